-- Frees the lock without its holders, if its mode is write.
--
-- KEYS lock, channel, prefix of all holds; ARGV nothing, payload, publish commands
return force('write')
