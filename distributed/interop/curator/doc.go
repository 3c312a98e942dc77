// Package curator has tests that drive package zklock and the real Apache Curator on one ZooKeeper: two versions of it, one
// of which
// names the nodes of readers below a writer in the older way. Its tests start the servers and the Java processes themselves;
// they need
// a JDK, Maven, and Debian's libzookeeper-java.
package curator
