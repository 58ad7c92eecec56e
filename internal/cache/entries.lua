-- Gives entries of the journal KEYS[1] in their order, each as its version and
-- what was sealed.
--
-- ARGV: where to begin, as XRANGE takes it; how many bytes are enough, and how
-- many entries; and how large one may be. It ends before one that is larger,
-- which is nobody's.
local out, size, from = {}, 0, ARGV[1]
local most, count, largest = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
repeat
  -- pcall, because a key may hold anything.
  local got = redis.pcall('XRANGE', KEYS[1], from, '+', 'COUNT', 32)
  if got.err then
    if string.find(got.err, 'WRONGTYPE', 1, true) then return {} end
    return got
  end
  for _, entry in ipairs(got) do
    local sealed = ''
    for i = 1, #entry[2], 2 do
      if entry[2][i] == 'v' then sealed = entry[2][i + 1] end
    end
    size = size + #sealed
    if #sealed > largest or size > most or #out >= 2 * count then return out end
    out[#out + 1] = entry[1]
    out[#out + 1] = sealed
    from = '(' .. entry[1]
  end
until #got < 32
return out
