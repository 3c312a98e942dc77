package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
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
 * 6 t1 stress mutex /it 5000 file    6 120 acquisitions
 * </pre>
 */
public final class Agent {
    private static final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
    private static final Map<String, InterProcessLock> locks = new ConcurrentHashMap<>();
    private static final Map<String, InterProcessReadWriteLock> pairs = new ConcurrentHashMap<>();
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
                return "" + stress(lock, Long.parseLong(words[5]), Path.of(words[6]));
            default:
                throw new IllegalArgumentException(words[2]);
        }
    }

    private static int stress(InterProcessLock lock, long millis, Path inside) throws Exception {
        int n = 0;
        for (long end = System.currentTimeMillis() + millis; System.currentTimeMillis() < end; n++) {
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
        return n;
    }
}
