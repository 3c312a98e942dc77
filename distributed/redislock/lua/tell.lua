-- Publishes a message to one client.
--
-- KEYS channel; ARGV message, publish commands
return publish(2, KEYS[1], ARGV[1])
