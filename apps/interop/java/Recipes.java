import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.UriSpec;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;

/** Runs Curator's side of a scenario with another client. Waits for a line of input before each step. */
public final class Recipes {
  private static final Scanner input = new Scanner(System.in);
  private static CuratorFramework client;
  private static int rounds;

  public static void main(String[] args) throws Exception {
    rounds = Integer.parseInt(args[2]);
    client = CuratorFrameworkFactory.newClient(args[0], 10_000, 15_000, new ExponentialBackoffRetry(100, 5));
    client.start();
    client.blockUntilConnected();
    say("ready");
    input.nextLine();
    switch (args[1]) {
      case "mutex" -> mutex();
      case "rw" -> readWrite();
      case "semaphore" -> semaphore();
      case "election" -> election();
      case "counter" -> counter();
      case "barrier" -> barrier();
      case "wait" -> waitAtBarrier();
      case "queue" -> queue();
      case "discovery" -> discovery();
      default -> throw new IllegalArgumentException(args[1]);
    }
    say("done");
    client.close();
  }

  private static void say(String line) {
    System.out.println(line);
    System.out.flush();
  }

  /** Increments the counter without a version, so that two concurrent holders lose a count. */
  private static void increment() throws Exception {
    int value = Integer.parseInt(new String(client.getData().forPath("/counter")));
    client.setData().forPath("/counter", Integer.toString(value + 1).getBytes());
  }

  private static void mutex() throws Exception {
    InterProcessMutex mutex = new InterProcessMutex(client, "/lock");
    for (int n = 0; n < rounds; n++) {
      mutex.acquire();
      increment();
      mutex.release();
    }
  }

  private static void readWrite() throws Exception {
    InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, "/rw");
    for (int n = 0; n < rounds; n++) {
      lock.writeLock().acquire();
      increment();
      lock.writeLock().release();
      lock.readLock().acquire();
      String before = new String(client.getData().forPath("/counter"));
      if (!before.equals(new String(client.getData().forPath("/counter")))) throw new IllegalStateException("changed");
      lock.readLock().release();
    }
  }

  private static void semaphore() throws Exception {
    InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, "/s", 1);
    for (int n = 0; n < rounds; n++) {
      Lease lease = semaphore.acquire();
      increment();
      semaphore.returnLease(lease);
    }
  }

  private static void election() throws Exception {
    for (int n = 0; n < rounds; n++) {
      LeaderLatch latch = new LeaderLatch(client, "/e", "curator");
      latch.start();
      latch.await();
      increment();
      latch.close();
    }
  }

  private static void counter() throws Exception {
    DistributedAtomicLong counter = new DistributedAtomicLong(client, "/count", new ExponentialBackoffRetry(10, 10));
    for (int n = 0; n < rounds; ) {
      AtomicValue<Long> value = counter.increment();
      if (value.succeeded()) n++;
    }
  }

  private static void barrier() throws Exception {
    DistributedBarrier barrier = new DistributedBarrier(client, "/barrier");
    barrier.setBarrier();
    say("created");
    input.nextLine();
    barrier.removeBarrier();
  }

  private static void waitAtBarrier() throws Exception {
    say("waiting");
    if (!new DistributedBarrier(client, "/barrier").waitOnBarrier(30, TimeUnit.SECONDS)) throw new IllegalStateException();
    say("through");
  }

  private static final QueueSerializer<String> texts =
      new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
          return item.getBytes();
        }

        @Override
        public String deserialize(byte[] bytes) {
          return new String(bytes);
        }
      };

  /** Puts items and consumes until the queue is empty. */
  private static void queue() throws Exception {
    AtomicInteger got = new AtomicInteger();
    QueueConsumer<String> consumer =
        new QueueConsumer<>() {
          @Override
          public void consumeMessage(String message) {
            got.incrementAndGet();
            say("got " + message);
          }

          @Override
          public void stateChanged(CuratorFramework framework, ConnectionState state) {}
        };
    DistributedPriorityQueue<String> queue =
        QueueBuilder.builder(client, consumer, texts, "/queue").lockPath("/queue.queue/claims").buildPriorityQueue(0);
    queue.start();
    for (int n = 0; n < rounds; n++) queue.put("curator-" + n, n % 3 - 1);
    // Curator puts items in the background.
    if (!queue.flushPuts(30, TimeUnit.SECONDS)) throw new IllegalStateException("Not all items were put");
    say("put");
    input.nextLine();
    queue.close();
  }

  private static void discovery() throws Exception {
    ServiceInstance<Map> own =
        ServiceInstance.<Map>builder()
            .name("api")
            .id("curator")
            .address("10.0.0.1")
            .port(8080)
            .sslPort(8443)
            .payload(new LinkedHashMap<>(Map.of("zone", "java")))
            .uriSpec(new UriSpec("{scheme}://{address}:{ssl-port}/v1"))
            .build();
    ServiceDiscovery<Map> discovery =
        ServiceDiscoveryBuilder.builder(Map.class)
            .client(client)
            .basePath("/services")
            .serializer(new JsonInstanceSerializer<>(Map.class))
            .thisInstance(own)
            .build();
    discovery.start();
    ServiceProvider<Map> provider = discovery.serviceProviderBuilder().serviceName("api").build();
    provider.start();
    say("registered");
    input.nextLine();
    Collection<ServiceInstance<Map>> all = provider.getAllInstances();
    for (int tries = 0; all.size() < 2 && tries < 100; tries++) {
      Thread.sleep(50);
      all = provider.getAllInstances();
    }
    for (ServiceInstance<Map> each : all) {
      if (each.getId().equals("curator")) continue;
      say("found " + each.getId() + " " + each.getAddress() + " " + each.getPort() + " " + each.getSslPort());
      say("more " + each.getPayload().get("zone") + " " + each.getServiceType() + " " + each.isEnabled());
      say("uri " + each.buildUriSpec() + " " + each.getRegistrationTimeUTC());
    }
    own = ServiceInstance.<Map>builder().name("api").id("curator").address("10.0.0.2").port(8081).build();
    discovery.updateService(own);
    say("updated");
    input.nextLine();
    provider.close();
    discovery.close();
  }
}
