-- Frees the lock without its holders, if they are in mode read.
--
-- KEYS lock, channel, prefix of all holds; ARGV nothing, payload, publish commands
return force('read')
