-- ours tells names of this library, whose UUIDs are of version 8, from Redisson's, whose UUIDs are
-- of version 4.
local function ours(name) return name:sub(15, 15) == '8' end
