import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

class Forks {
  public static void main(String[] arguments) throws Exception {
    var pool = Executors.newFixedThreadPool(4);
    List<Future<String>> answers = new ArrayList<>();
    for (int number = 0; number < 20; number++) {
      var command = new ProcessBuilder("sh", "-c", "echo answer " + number + "; exit " + number);
      answers.add(pool.submit(() -> {
        var process = command.start();
        String line = new String(process.getInputStream().readAllBytes());
        return line.trim() + " " + process.waitFor();
      }));
    }
    for (var answer : answers)
      System.out.println(answer.get());
    pool.shutdown();
    System.gc();
  }
}
