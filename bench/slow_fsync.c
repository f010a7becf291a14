/* Preloaded into Postgres or Tidegate, makes every fsync and fdatasync a millisecond longer: a disk that is
   honest about its cache. The call itself is still made, by the system call, so nothing is less durable. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_one_ms(void) {
    struct timespec left = {0, 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

int fsync(int fd) {
    wait_one_ms();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    wait_one_ms();
    return (int)syscall(SYS_fdatasync, fd);
}
