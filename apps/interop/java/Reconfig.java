import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.data.Stat;

/**
 * Sends one reconfig by the list API: address and credentials, then what joins, what leaves and the new members, one a line, each
 * empty for none.
 */
class Reconfig {
  public static void main(String[] args) throws Exception {
    CountDownLatch connected = new CountDownLatch(1);
    try (ZooKeeperAdmin client = new ZooKeeperAdmin(args[0], 30_000, event -> {
      if (event.getState() == KeeperState.SyncConnected) connected.countDown();
    })) {
      connected.await();
      client.addAuthInfo("digest", args[1].getBytes());
      byte[] data = client.reconfigure(list(args[2]), list(args[3]), list(args[4]), -1, new Stat());
      System.out.println(new String(data));
    } catch (KeeperException error) {
      System.out.println("refused: " + error.getMessage());
    }
  }

  private static List<String> list(String lines) {
    return lines.isEmpty() ? null : Arrays.asList(lines.split("\n"));
  }
}
