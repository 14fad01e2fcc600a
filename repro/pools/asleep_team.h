// Waits until all other threads sleep. Then the workers of a pool wait for work, and hold no lock of their library. If
// a worker held such a lock at the fork, the child would hang in that lock instead.
#pragma once

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int is_asleep(const char* tid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%s/stat", tid);
  FILE* const file = fopen(path, "r");
  if (file == NULL) abort();
  if (fgets(text, sizeof text, file) == NULL) abort();
  fclose(file);
  return strrchr(text, ')')[2] == 'S';
}

static inline void await_sleep_of_others(void) {
  for (int awake = 1; awake > 0;) {
    DIR* const tasks = opendir("/proc/self/task");
    awake = 0;
    for (struct dirent* entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
      if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != getpid() && !is_asleep(entry->d_name)) ++awake;
    }
    closedir(tasks);
  }
}
