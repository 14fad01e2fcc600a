// Mechanism: none. Two threads walk a list from its head. The threads lock each node before they unlock the previous
//            node. They remove nodes and free them. Then they insert new nodes elsewhere, which get the same addresses.
//            So sooner or later the addresses of locks appear in every order. But the lock of a new node is a new lock.
// To blame:  nobody.
// User sees: nothing, and must not see a warning.
// Fix:       none needed.
//
// EXPECT-OPTIONS: --lock-order
// EXPECT-BARE: ok
// EXPECT-NONE
#include <mutex>
#include <thread>

namespace {

constexpr int kNodes = 8;
constexpr int kWalks = 2000;

struct Node {
  std::mutex mutex;
  Node* next = nullptr;
};

Node g_head;

// Walks to the node at `place`, or to the last node if the list is shorter. Returns the node. Only its lock is held.
Node* walk(unsigned place) {
  g_head.mutex.lock();
  Node* at = &g_head;
  while (place-- > 0 && at->next != nullptr) {
    at->next->mutex.lock();
    Node* const before = at;
    at = at->next;
    before->mutex.unlock();
  }
  return at;
}

void insert_after(unsigned place) {
  auto* const node = new Node;
  Node* const at = walk(place);
  node->next = at->next;
  at->next = node;
  at->mutex.unlock();
}

void remove_after(unsigned place) {
  Node* const at = walk(place);
  Node* const gone = at->next;
  if (gone != nullptr) {
    gone->mutex.lock();
    at->next = gone->next;
    gone->mutex.unlock();
  }
  at->mutex.unlock();
  delete gone;
}

void work(unsigned random) {
  for (int i = 0; i < kWalks; ++i) {
    random = random * 1664525 + 1013904223;
    remove_after((random >> 16) % kNodes);
    insert_after((random >> 24) % kNodes);
  }
}

}  // namespace

int main() {
  for (unsigned i = 0; i < kNodes; ++i) insert_after(0);
  std::thread one(work, 1);
  std::thread other(work, 2);
  one.join();
  other.join();
  while (g_head.next != nullptr) remove_after(0);
}
