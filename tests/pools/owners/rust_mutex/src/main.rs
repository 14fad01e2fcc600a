// The parent forks while another of its threads holds a std::sync::Mutex, and the child locks the
// mutex. Repaired: the parent forks while the mutex is free.
use std::sync::mpsc;
use std::sync::Mutex;

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

static QUEUE: Mutex<i32> = Mutex::new(1);

fn main() {
    let (tell_held, held) = mpsc::channel();
    let (end, wait_for_end) = mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
        let guard = QUEUE.lock().unwrap();
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
            let value = *QUEUE.lock().unwrap();
            _exit(value - 1);
        }
        waitpid(child, &mut status, 0);
    }
    drop(end);
    holder.join().unwrap();
    std::process::exit((status != 0) as i32);
}
