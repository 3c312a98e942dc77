-- Frees the lock without its holders, if its mode is read.
--
-- KEYS lock, channel, prefix of all holds; ARGV nothing, payload, publish commands
return force('read')
