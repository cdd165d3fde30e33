-- spec/cli/diagnose_spec.lua: `ltrain diagnose FOLDER`.
local child = require "spec.cli.child"
local c = require "ltrain.c"

-- Writes the ring of a rank: entries are {seq, hash, op, shape, done}, other fields on top.
local function ring(folder, rank, entries)
  local lines = {}
  for i, e in ipairs(entries) do
    lines[i] = c.io.json_encode({
      rank = rank, number = i, group = e.group or 0, seq = e[1], hash = e[2], op = e[3],
      reduce = e[3] == "all_reduce" and "sum" or "", dtype = "f32", root = e.root or -1,
      shape = e[4], form = 0, file = "model.lua", line = e.line or 30 + rank, hook = e.hook or "",
      bytes = 32, issued_ns = 10, arrived_ns = e[5] and 20 or 0, done_ns = e[5] and 30 or 0,
    }, { plain = true })
  end
  assert(c.io.write_file(("%s/ring.rank%d.jsonl"):format(folder, rank),
    table.concat(lines, "\n") .. "\n"))
end

local function report(folder, rank, text)
  assert(c.io.write_file(("%s/failure.rank%d.txt"):format(folder, rank), text))
end

describe("ltrain diagnose", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  it("names the first collective that differs", function()
    ring(folder, 0, { { 1203, "aa", "all_reduce", { 8 }, true },
      { 1204, "bb", "all_gather", { 8, 10 }, false, hook = "validation_step" } })
    ring(folder, 1, { { 1203, "aa", "all_reduce", { 8 }, true },
      { 1204, "cc", "all_gather", { 16, 10 }, false } })
    report(folder, 0, "ranks disagree\n")
    report(folder, 1, "ranks disagree\n")
    local status, out = child.run { "diagnose", folder }
    assert.equal(0, status)
    assert.equal(table.concat {
      "ranks 0, 1: ranks disagree\n",
      "collective 1,204: the first that differs (1 before it agree)\n",
      "  rank 0: all_gather [8, 10] f32 at model.lua:30 (validation_step): waited for the others\n",
      "  rank 1: all_gather [16, 10] f32 at model.lua:31: waited for the others\n",
    }, out)
  end)

  it("joins ranks that did the same", function()
    for rank = 0, 4 do
      ring(folder, rank, { { 1, "aa", "barrier", {}, true, line = 7 },
        { 2, rank == 3 and "cc" or "bb", "all_reduce", { rank == 3 and 4 or 8 }, line = 8 } })
    end
    local _, out = child.run { "diagnose", folder }
    assert.matches("  ranks 0-2, 4: all_reduce sum [8] f32 at model.lua:8: waited for the others\n"
      .. "  rank 3: all_reduce sum [4] f32 at model.lua:8: waited for the others\n", out, 1, true)
  end)

  it("names the rank that never came, and its last one", function()
    ring(folder, 0, { { 1, "aa", "all_reduce", { 8 }, true }, { 2, "bb", "barrier", {}, false } })
    ring(folder, 1, { { 1, "aa", "all_reduce", { 8 }, true } })
    local _, out = child.run { "diagnose", folder }
    assert.matches("collective 2: the first that differs", out)
    assert.matches("rank 0: barrier at model.lua:30: waited", out)
    assert.matches("rank 1: never arrived: its last was 1, "
      .. "all_reduce sum %[8%] f32 at model.lua:31",
      out)
  end)

  it("compares only what every ring still holds", function()
    ring(folder, 0, { { 5, "old", "barrier", {}, true }, { 6, "aa", "barrier", {}, true } })
    ring(folder, 1, { { 6, "aa", "barrier", {}, true } })
    local _, out = child.run { "diagnose", folder }
    assert.matches("no collective differs", out)
    assert.matches("rank 0: 6, barrier at model.lua:30: done", out)
  end)

  it("counts messages by pair, and other groups apart", function()
    ring(folder, 0, { { 1, "aa", "send", { 8 }, true, root = 2 },
      { 1, "gg", "barrier", {}, true, group = 7 } })
    ring(folder, 1, { { 1, "bb", "send", { 4 }, true, root = 2 } })
    ring(folder, 2, { { 1, "aa", "recv", { 8 }, true, root = 0 },
      { 1, "cc", "recv", { 9 }, true, root = 1 },
      { 1, "hh", "barrier", {}, false, group = 7 } })
    local _, out = child.run { "diagnose", folder }
    assert.matches("message between ranks 1%-2 1: the first that differs", out)
    assert.matches("collective 1 of group 00000007: the first that differs", out)
    assert.not_matches("ranks 0%-2", out)
  end)

  it("reads a ring whose last line was cut", function()
    ring(folder, 0, { { 1, "aa", "barrier", {}, true } })
    local path = folder .. "/ring.rank0.jsonl"
    assert(c.io.append_file(path, '{"rank":0,"numb'))
    local status, out = child.run { "diagnose", folder }
    assert.equal(0, status)
    assert.matches("rank 0: 1, barrier", out)
  end)

  it("says when a folder has nothing of the kind, or is none", function()
    local status, _, err = child.run { "diagnose", folder }
    assert.equal(1, status)
    assert.matches("no failure.rank<N>.txt and no ring.rank<N>.jsonl in it", err)
    status, _, err = child.run { "diagnose", folder .. "/absent" }
    assert.equal(1, status)
    assert.matches("absent", err)
    assert.equal(2, (child.run { "diagnose" }))
  end)
end)
