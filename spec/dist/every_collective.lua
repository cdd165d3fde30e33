-- spec/dist/every_collective.lua: a part of a script: every collective, over all ranks and over
-- groups of them, at once and by handles, with results of its own and in `out`, against numbers
-- that each rank computes alone. `rank`; `device` (nil: the host's memory).

-- Rank r of n has [2 n, 3] numbers that no other has; `total`, `part`: the sum, and rank r's rows.
return [[
  local function input(r, n) return lt.arange(6 * n, {dtype = "f64"}):view(2 * n, 3) + 100 * r end
  local function part(x, r) return x:narrow(1, 2 * r + 1, 2) end
  local function head(r, n) return input(r, n):narrow(1, 1, r) end

  -- Name, x, options, what rank r gets; `values`: no tensors, `own`: there is no `out`.
  local function rows_of(n, r, xs)
    local total, last, list = xs[1], n - 1, {}
    for k = 2, n do total = total + xs[k] end
    for k = 1, n do list[k] = {k, "v" .. k} end
    local parts, heads, splits, uneven = {}, {}, {}, {}
    for k = 1, n do
      parts[k], heads[k], splits[k] = part(xs[k], r), head(k - 1, n), k == 1 and 2 * n or 0
      uneven[k] = r == 0 and xs[k] or xs[k]:narrow(1, 1, 0)
    end
    local x = xs[r + 1]
    return {
      {"all_reduce", x, {}, total}, {"all_reduce", x, {op = "mean"}, total / n},
      {"all_reduce", x, {op = "max"}, xs[n]}, {"all_reduce", x, {op = "min"}, xs[1]},
      {"all_reduce_", x * 1, {}, total, own = true},
      {"broadcast", x, {from = last}, xs[n]}, {"all_gather", x, {}, lt.stack(xs, 1)},
      {"all_gather", head(r, n), {cat = true}, lt.cat(heads, 1), own = true},
      {"reduce_scatter", x, {}, part(total, r)},
      {"all_to_all", x, {}, lt.cat(parts, 1)},
      {"all_to_all", x, {splits = splits}, lt.cat(uneven, 1)},
      {"reduce", x, {to = last}, r == last and total or nil},
      {"gather", x, {to = last}, r == last and lt.stack(xs, 1) or nil},
      {"scatter", r == last and x or nil, {from = last}, part(xs[n], r), own = true},
      {"all_reduce", r + 1, {}, n * (n + 1) // 2, values = true},
      {"broadcast", list[r + 1], {from = last}, list[n], values = true},
      {"all_gather", list[r + 1], {}, list, values = true},
      {"reduce", r, {op = "max", to = last}, r == last and last or nil, values = true},
      {"gather", list[r + 1], {to = last}, r == last and list or nil, values = true},
      {"scatter", r == last and list or nil, {from = last}, list[r + 1], values = true},
    }
  end

  local function on(to, x) return lt.is_tensor(x) and to and x:to(to) or x end

  local function call(group, row, async, out)
    local o = {async = async, out = out}
    for key, value in next, row[3] do o[key] = value end
    local got = group[row[1] ](group, on(device, row[2]), o)
    if async then
      local handle = got
      while not handle:test() do end
      got = handle:wait()
    end
    same(on("cpu", row[4]), on("cpu", got))
    local stays = device and row[1] ~= "scatter" and lt.is_tensor(got)
    if stays then same(device, got.device) end
    return got
  end

  local function check(group)
    local n, r, xs = group:world_size(), group:rank(), {}
    for k = 1, n do xs[k] = input(k - 1, n) end
    for _, async in ipairs{false, true} do
      for _, row in ipairs(rows_of(n, r, xs)) do call(group, row, async) end
      for _, row in ipairs(rows_of(n, r, xs)) do
        local has_out = not row.own and not row.values
        local out = has_out and row[4] and on(device, row[4] * 0) or nil
        if has_out then same(true, out == nil or rawequal(out, call(group, row, async, out))) end
        if has_out and not out then call(group, row, async) end
      end
    end
    if n > 1 then
      local right, left = (r + 1) % n, (r + n - 1) % n
      local room, x = on(device, xs[1] * 0), on(device, xs[r + 1])
      local sent = group:send(x, right, {async = true})
      same(true, rawequal(room, group:recv(room, {from = left})))
      same(nil, sent:wait())
      same(xs[left + 1], on("cpu", room))
      local got = group:batch{{"send", {x, "and"}, left}, {"recv", right}, {"barrier"}}
      same({on("cpu", xs[right + 1]), "and"}, {on("cpu", got[2][1]), got[2][2]})
    end
    same(nil, group:barrier())
  end

  local n = dist.world_size()
  check(dist.split(0))
  check(dist.split(rank % 2, {key = -rank}))
  check(dist.split(0):split(rank // 2))
  check(dist.mesh(n % 2 == 0 and {n // 2, 2} or {1, n}, {"a", "b"}):group("b"))
  -- Without a group they are those of all ranks.
  check(setmetatable({}, {__index = function(_, name)
    return function(_, ...) local got = dist[name](...) return got end
  end}))
]]
