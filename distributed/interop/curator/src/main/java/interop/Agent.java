package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryNTimes;

/**
 * Executes requests on Curator's locks, one a line of input, and answers each with a line. Arguments: the servers, and the
 * session timeout in milliseconds. A request has the number of its answer, a thread, an operation, the kind of lock, its
 * path, and an argument:
 *
 * <pre>
 * 1 t1 lock mutex /it         1 ok
 * 2 t1 try mutex /it 100      2 true
 * 3 t1 unlock mutex /it       3 ok
 * 4 t1 revocable mutex /it    4 ok, and "revoked /it" when it is asked to give the lock back
 * 5 t1 revoke mutex /it/node  5 ok
 * 6 t1 stress mutex /it 120 file    6 120 acquisitions
 * 7 t1 take permits /it 3 2          7 true when it has 2 of 3 leases
 * 8 t1 take permits /it 3 2 100      8 false if it had to wait for longer than that
 * 9 t1 count permits /it 3           9 2
 * 10 t1 give permits /it 3           10 ok
 * 11 t1 stress permits /it 3 5000 http://127.0.0.1:8000    11 120 acquisitions
 * </pre>
 */
public final class Agent {
    private static final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private static final Map<String, InterProcessLock> locks = new ConcurrentHashMap<>();
    private static final Map<String, InterProcessReadWriteLock> pairs = new ConcurrentHashMap<>();
    private static final Map<String, InterProcessSemaphoreV2> semaphores = new ConcurrentHashMap<>();
    private static final Map<String, Collection<Lease>> leases = new ConcurrentHashMap<>();
    private static CuratorFramework client;

    public static void main(String[] args) throws Exception {
        client = CuratorFrameworkFactory.newClient(args[0], Integer.parseInt(args[1]), 10_000, new RetryNTimes(20, 100));
        client.start();
        if (!client.blockUntilConnected(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not connected");
        }
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            threads.computeIfAbsent(words[1], n -> Executors.newSingleThreadExecutor()).execute(() -> {
                String answer;
                try {
                    answer = serve(words);
                } catch (Throwable e) {
                    answer = "error " + e.getClass().getSimpleName() + " " + e.getMessage();
                }
                say(words[0] + " " + answer);
            });
        }
        client.close();
        System.exit(0);
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static InterProcessLock lock(String thread, String kind, String path) {
        InterProcessReadWriteLock pair = pairs.computeIfAbsent(path, p -> new InterProcessReadWriteLock(client, p));
        switch (kind) {
            case "read":
                return pair.readLock();
            case "write":
                return pair.writeLock();
            case "semaphore": // belongs to no thread
                return locks.computeIfAbsent(thread + kind + path, p -> new InterProcessSemaphoreMutex(client, path));
            case "multi":
                return locks.computeIfAbsent(kind + path, p -> {
                    List<InterProcessLock> all = new ArrayList<>();
                    for (String part : path.split(",")) {
                        all.add(lock(thread, "mutex", part));
                    }
                    return new InterProcessMultiLock(all);
                });
            default:
                return locks.computeIfAbsent(kind + path, p -> new InterProcessMutex(client, path));
        }
    }

    private static String serve(String[] words) throws Exception {
        String path = words[4];
        if (words[3].equals("permits")) {
            return servePermits(words);
        }
        InterProcessLock lock = words[2].equals("revoke") ? null : lock(words[1], words[3], path);
        switch (words[2]) {
            case "lock":
                lock.acquire();
                return "ok";
            case "try":
                return "" + lock.acquire(Long.parseLong(words[5]), TimeUnit.MILLISECONDS);
            case "unlock":
                lock.release();
                return "ok";
            case "revocable":
                ((InterProcessMutex) lock).makeRevocable(l -> say("revoked " + path));
                lock.acquire();
                return "ok";
            case "revoke":
                Revoker.attemptRevoke(client, path);
                return "ok";
            case "stress":
                return "" + stress(lock, Integer.parseInt(words[5]), Path.of(words[6]));
            default:
                throw new IllegalArgumentException(words[2]);
        }
    }

    private static String servePermits(String[] words) throws Exception {
        String path = words[4];
        int size = Integer.parseInt(words[5]);
        InterProcessSemaphoreV2 semaphore = semaphores.computeIfAbsent(path + size, p -> new InterProcessSemaphoreV2(client, path, size));
        switch (words[2]) {
            case "take":
                int n = Integer.parseInt(words[6]);
                Collection<Lease> taken = words.length == 7
                        ? semaphore.acquire(n)
                        : semaphore.acquire(n, Long.parseLong(words[7]), TimeUnit.MILLISECONDS);
                if (taken != null) {
                    leases.put(words[1] + path, taken);
                }
                return "" + (taken != null);
            case "give":
                semaphore.returnAll(leases.remove(words[1] + path));
                return "ok";
            case "count":
                return "" + semaphore.getParticipantNodes().size();
            case "stress":
                return "" + stress(semaphore, Long.parseLong(words[6]), words[7]);
            default:
                throw new IllegalArgumentException(words[2]);
        }
    }

    /** Takes one or two leases, and tells a server of the test how many it has. */
    private static int stress(InterProcessSemaphoreV2 semaphore, long millis, String server) throws Exception {
        int n = 0;
        for (long end = System.currentTimeMillis() + millis; System.currentTimeMillis() < end; ) {
            int permits = 1 + n % 2;
            // Several acquisitions of two leases, each of which has one, would wait for each other.
            Collection<Lease> taken = semaphore.acquire(permits, 300, TimeUnit.MILLISECONDS);
            if (taken == null) {
                continue;
            }
            n++;
            try {
                tell(server + "/enter?n=" + permits);
                Thread.sleep(1);
                tell(server + "/leave?n=" + permits);
            } finally {
                semaphore.returnAll(taken);
            }
        }
        return n;
    }

    private static void tell(String url) throws Exception {
        URI.create(url).toURL().openStream().close();
    }

    private static int stress(InterProcessLock lock, int rounds, Path inside) throws Exception {
        for (int n = 0; n < rounds; n++) {
            lock.acquire();
            try {
                try {
                    Files.createFile(inside);
                } catch (FileAlreadyExistsException e) {
                    throw new IllegalStateException("two inside");
                }
                Thread.sleep(1);
                Files.delete(inside);
            } finally {
                lock.release();
            }
        }
        return rounds;
    }
}
