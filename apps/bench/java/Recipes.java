import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.cache.TreeCacheEvent;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Runs one measurement with Curator and prints one figure. Arguments: address, work, amount, path, seconds. */
public final class Recipes {
  private static String address;
  private static final List<CuratorFramework> clients = new ArrayList<>();

  public static void main(String[] args) throws Exception {
    address = args[0];
    int amount = Integer.parseInt(args[2]);
    double figure =
        switch (args[1]) {
          case "locks" -> locks(args[3], amount, Integer.parseInt(args[4]));
          case "election" -> election(args[3], amount);
          case "queue", "take" -> queue(args[3], amount);
          case "cache" -> cache(args[3]);
          default -> throw new IllegalArgumentException(args[1]);
        };
    for (CuratorFramework client : clients) client.close();
    System.out.println("figure " + figure);
    System.exit(0);
  }

  private static CuratorFramework connect() throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(address, 20_000, 15_000, new ExponentialBackoffRetry(100, 5));
    client.start();
    client.blockUntilConnected();
    clients.add(client);
    return client;
  }

  private static double locks(String path, int contenders, int seconds) throws Exception {
    for (int n = 0; n < contenders; n++) connect();
    long began = System.nanoTime();
    long until = began + seconds * 1_000_000_000L;
    AtomicInteger turns = new AtomicInteger();
    CountDownLatch ended = new CountDownLatch(contenders);
    for (CuratorFramework client : clients) {
      Thread thread =
          new Thread(
              () -> {
                InterProcessMutex mutex = new InterProcessMutex(client, path);
                try {
                  while (System.nanoTime() < until) {
                    mutex.acquire();
                    if (System.nanoTime() < until) turns.incrementAndGet();
                    mutex.release();
                  }
                } catch (Exception error) {
                  error.printStackTrace();
                }
                ended.countDown();
              });
      thread.start();
    }
    ended.await();
    return turns.get() / (double) seconds;
  }

  private static double election(String path, int rounds) throws Exception {
    double[] times = new double[rounds];
    CuratorFramework leader = connect();
    LeaderLatch leading = new LeaderLatch(leader, path);
    leading.start();
    leading.await();
    for (int n = 0; n < rounds; n++) {
      CuratorFramework next = connect();
      LeaderLatch waiting = new LeaderLatch(next, path);
      waiting.start();
      while (waiting.getParticipants().size() < 2) Thread.sleep(5);
      Thread.sleep(50);
      long began = System.nanoTime();
      leader.getZookeeperClient().getZooKeeper().close();
      waiting.await();
      times[n] = (System.nanoTime() - began) / 1e6;
      clients.remove(leader);
      leader = next;
    }
    Arrays.sort(times);
    return times[rounds / 2];
  }

  private static double queue(String path, int items) throws Exception {
    SimpleDistributedQueue producer = new SimpleDistributedQueue(connect(), path);
    SimpleDistributedQueue consumer = new SimpleDistributedQueue(connect(), path);
    Thread consuming =
        new Thread(
            () -> {
              try {
                for (int n = 0; n < items; n++) consumer.take();
              } catch (Exception error) {
                error.printStackTrace();
              }
            });
    long began = System.nanoTime();
    consuming.start();
    byte[] data = new byte[100];
    for (int n = 0; n < items; n++) producer.offer(data);
    consuming.join();
    return items / ((System.nanoTime() - began) / 1e9);
  }

  private static double cache(String path) throws Exception {
    CuratorFramework client = connect();
    CountDownLatch ready = new CountDownLatch(1);
    long began = System.nanoTime();
    TreeCache cache = new TreeCache(client, path);
    cache
        .getListenable()
        .addListener(
            (framework, event) -> {
              if (event.getType() == TreeCacheEvent.Type.INITIALIZED) ready.countDown();
            });
    cache.start();
    ready.await();
    double ms = (System.nanoTime() - began) / 1e6;
    cache.close();
    return ms;
  }
}
