// The parent forks while another of its threads holds a parking_lot::Mutex, and the child locks the
// mutex. Repaired: the parent forks while the mutex is free.
use std::sync::mpsc;
use parking_lot::Mutex;

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

static QUEUE: Mutex<i32> = parking_lot::const_mutex(1);

fn main() {
    let (tell_held, held) = mpsc::channel();
    let (end, wait_for_end) = mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        let guard = QUEUE.lock();
        if cfg!(feature = "repaired") {
            drop(guard);
            tell_held.send(()).unwrap();
            let _ = wait_for_end.recv();
        } else {
            tell_held.send(()).unwrap();
            let _ = wait_for_end.recv();
            drop(guard);
        }
    });
    held.recv().unwrap();
    let mut status = 0;
    unsafe {
        let child = fork();
        if child == 0 {
            let value = *QUEUE.lock();
            _exit(value - 1);
        }
        waitpid(child, &mut status, 0);
    }
    drop(end);
    holder.join().unwrap();
    std::process::exit((status != 0) as i32);
}
