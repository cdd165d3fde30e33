-- spec/files/zip.lua: the bytes of a zip file of { { name, bytes }, ... }, stored;
-- `change(n, entry)` may change the fields of the n-th entry of its directory.
local LOCAL <const> = "<I4I2I2I2I2I2I4I4I4I2I2"
local ENTRY <const> = "<I4I2I2I2I2I2I2I4I4I4I2I2I2I2I2I4I4"

return function(members, change)
  local parts, directory, at = {}, {}, 0
  for n, member in ipairs(members) do
    local entry = { name = member[1], size = #member[2], packed = #member[2], at = at, method = 0,
      flags = 0, crc = 0 }
    if change then change(n, entry) end
    local head = LOCAL:pack(0x04034b50, 0, 0, 0, 0, 0, 0, 0, 0, #entry.name, 0) .. entry.name
    parts[#parts + 1] = head .. member[2]
    directory[n] = ENTRY:pack(0x02014b50, 0, 0, entry.flags, entry.method, 0, 0, entry.crc,
      entry.packed, entry.size, #entry.name, 0, 0, 0, 0, 0, entry.at) .. entry.name
    at = at + #head + #member[2]
  end
  local listed = table.concat(directory)
  return table.concat(parts) .. listed
    .. ("<I4I2I2I2I2I4I4I2"):pack(0x06054b50, 0, 0, #members, #members, #listed, at, 0)
end
