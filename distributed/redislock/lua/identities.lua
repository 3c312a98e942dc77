-- Replies what each client tells of its process, or an empty string.
--
-- KEYS identities
local texts = {}
for i, key in ipairs(KEYS) do
	local text = redis.pcall('get', key)
	texts[i] = type(text) == 'string' and text or ''
end
return texts
