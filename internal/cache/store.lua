-- Puts a value at KEYS[1] and gives up the lock KEYS[2], unless the reader has
-- been overtaken: another holds the lock, or a younger value is there.
--
-- ARGV: the reader's token; its stamp (see acquire.lua); the sealed value; how
-- long it stays from when its reading began, and how long from now at least, in
-- µs.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local holder = redis.pcall('GET', KEYS[2])
if type(holder) == 'string' then
  if holder ~= ARGV[1] then
    return 0
  end
  redis.call('DEL', KEYS[2])
end

local stamp = redis.pcall('GETRANGE', KEYS[1], 0, 15)
local began = tonumber(string.sub(ARGV[2], 1, 16))
if type(stamp) == 'string' and #stamp == 16 then
  local other = tonumber(stamp)
  if other and other > began and other <= now then
    return 0
  end
end

local life = math.max(tonumber(ARGV[4]) - (now - began), tonumber(ARGV[5]))
redis.call('SET', KEYS[1], ARGV[2] .. ARGV[3], 'PX', string.format('%.0f', math.ceil(life / 1000)))
return 1
