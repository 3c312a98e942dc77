// Package curator tests package zklock against the real Apache Curator on one ZooKeeper server.
// It uses two versions of Curator: the older one names the nodes of readers below a writer in
// another way. The tests start the servers and the Java processes. They need a JDK, Maven, and
// Debian's libzookeeper-java.
package curator
