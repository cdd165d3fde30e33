--- stdlib/apps/dashboard/line_diff.lua: a diff of two texts by lines (Myers, An O(ND) Difference
--- Algorithm and Its Variations, 1986).
local line_diff = {}

local AROUND <const> = 3
local MOST_STEPS <const> = 1000 -- lines that differ: beyond, all are said to
local MOST_LINES <const> = 2000 -- that are returned

local function lines_of(text)
  local list = {}
  if text == "" then return list end
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch "([^\n]*)\n" do
    list[#list + 1] = line:gsub("\r$", "")
  end
  return list
end

-- The furthest points of each number of changes; nil where there are too many.
local function search(a, b, most)
  local v, trace = { [1] = 0 }, {}
  for d = 0, math.min(#a + #b, most) do
    local kept = {}
    for k = -d, d, 2 do
      local down = k == -d or k ~= d and v[k - 1] < v[k + 1]
      local x = down and v[k + 1] or v[k - 1] + 1
      local y = x - k
      while x < #a and y < #b and a[x + 1] == b[y + 1] do x, y = x + 1, y + 1 end
      v[k], kept[k] = x, x
      if x >= #a and y >= #b then
        trace[d] = kept
        return trace, d
      end
    end
    trace[d] = kept
  end
end

-- The edit script, from its end.
local function walk_back(a, b, trace, d)
  local script, x, y = {}, #a, #b
  for step = d, 1, -1 do
    local before, k = trace[step - 1], x - y
    local down = k == -step or k ~= step and (before[k - 1] or -1) < (before[k + 1] or -1)
    local from = down and k + 1 or k - 1
    local px = before[from]
    local py = px - from
    local sx, sy = down and px or px + 1, down and py + 1 or py
    while x > sx and y > sy do
      script[#script + 1] = { " ", a[x] }
      x, y = x - 1, y - 1
    end
    script[#script + 1] = down and { "+", b[y] } or { "-", a[x] }
    x, y = px, py
  end
  while x > 0 do
    script[#script + 1] = { " ", a[x] }
    x = x - 1
  end
  return script
end

local function all_differ(a, b)
  local script = {}
  for i = #b, 1, -1 do script[#script + 1] = { "+", b[i] } end
  for i = #a, 1, -1 do script[#script + 1] = { "-", a[i] } end
  return script
end

--- The lines that differ between two texts and those around them: a list of {kind =, text =}, kind
--- " " (both), "-" (the first), "+" (the second), "@" (lines are left out). Empty where none does.
--- Where more than `most` (1,000) lines differ, all do. Returns how many were looked for, too:
--- their square is what it costs.
function line_diff.between(first, second, most)
  local a, b = lines_of(first), lines_of(second)
  most = math.min(most or MOST_STEPS, MOST_STEPS)
  local trace, d = search(a, b, most)
  if d == 0 then return {}, 0 end
  local script = trace and walk_back(a, b, trace, d) or all_differ(a, b)
  local near = {}
  for i, line in ipairs(script) do
    if line[1] ~= " " then
      for j = i - AROUND, i + AROUND do near[j] = true end
    end
  end
  local list, skipped = {}, false
  for i = #script, 1, -1 do
    if near[i] and #list < MOST_LINES then
      if skipped then list[#list + 1] = { kind = "@", text = "" } end
      list[#list + 1], skipped = { kind = script[i][1], text = script[i][2] }, false
    else
      skipped = true
    end
  end
  if #list >= MOST_LINES then list[#list + 1] = { kind = "@", text = "" } end
  return list, d or most
end

return line_diff
