#include <forksight/ipc.h>
#include <stdio.h>

int main(void) {
  struct forksight_queue_error why;
  forksight_queue* queue = NULL;
  forksight_message* message = NULL;
  if (forksight_queue_create(NULL, &queue, &why) != 0 || forksight_queue_send_copy(queue, "installed", 9, -1, &why) != 0 ||
      forksight_queue_receive(queue, -1, &message, &why) != 0) {
    puts(why.text);
    return 1;
  }
  printf("%.*s\n", (int)forksight_message_size(message), (const char*)forksight_message_data(message));
  forksight_message_release(message);
  size_t unused = 0;
  if (forksight_queue_payload_fd(queue) != -1 || forksight_queue_gc(1, &unused, &why) != 0) return 1;
  forksight_queue_close(queue);
  return 0;
}
