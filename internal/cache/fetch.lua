-- Gives the value KEYS[1] without its stamp if it still has the stamp ARGV[1]
-- and no more than ARGV[2] bytes, else an empty string.
if redis.pcall('GETRANGE', KEYS[1], 0, 31) ~= ARGV[1] or redis.call('STRLEN', KEYS[1]) > tonumber(ARGV[2]) then
  return ''
end
return redis.call('GETRANGE', KEYS[1], 32, -1)
