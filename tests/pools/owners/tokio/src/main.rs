// The workers of a tokio runtime run the parent's tasks. The child does not have these workers. Repaired: the child
// builds a runtime of its own.
use tokio::runtime::{Builder, Runtime};

extern "C" {
    fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

fn build() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

fn answer(runtime: &Runtime) -> i32 {
    runtime.block_on(async { tokio::spawn(async { 42 }).await.unwrap() })
}

fn main() {
    let runtime = build();
    assert_eq!(answer(&runtime), 42);
    let mut status = 0;
    unsafe {
        let child = fork();
        if child == 0 {
            let told = if cfg!(feature = "repaired") { answer(&build()) } else { answer(&runtime) };
            _exit((told != 42) as i32);
        }
        waitpid(child, &mut status, 0);
    }
    std::process::exit((status != 0) as i32);
}
