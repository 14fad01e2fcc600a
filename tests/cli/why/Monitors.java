// "ring": two threads wait for each other's monitor. "idle": two threads sleep in wait(). The program writes a byte when
// both threads wait.
class Monitors {
  static final Object ONE = new Object();
  static final Object OTHER = new Object();
  static final java.util.concurrent.CyclicBarrier BOTH = new java.util.concurrent.CyclicBarrier(2);

  static void lock(Object first, Object second) throws Exception {
    synchronized (first) {
      BOTH.await();
      synchronized (second) {
        throw new IllegalStateException("they got both");
      }
    }
  }

  static void idle(Object monitor) throws Exception {
    synchronized (monitor) {
      monitor.wait();
    }
  }

  static Thread start(java.util.concurrent.Callable<Void> task) {
    final Thread thread = new Thread(() -> {
      try {
        task.call();
      } catch (Exception problem) {
        System.exit(3);
      }
    });
    thread.start();
    return thread;
  }

  public static void main(String[] mode) throws Exception {
    final boolean ring = mode[0].equals("ring");
    final Thread[] threads = {
        start(() -> { if (ring) lock(ONE, OTHER); else idle(ONE); return null; }),
        start(() -> { if (ring) lock(OTHER, ONE); else idle(OTHER); return null; })};
    final Thread.State wanted = ring ? Thread.State.BLOCKED : Thread.State.WAITING;
    for (Thread thread : threads) {
      while (thread.getState() != wanted) Thread.onSpinWait();
    }
    // A thread that waits at the barrier is in state WAITING. So in mode "ring", only the state BLOCKED shows that a
    // thread waits for a monitor.
    System.out.write('x');
    System.out.flush();
    System.in.read();
    System.exit(0);
  }
}
