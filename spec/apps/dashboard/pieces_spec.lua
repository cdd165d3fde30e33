-- spec/apps/dashboard/pieces_spec.lua: long answers do not keep others waiting.
local Dashboard = require "ltrain.apps.dashboard"
local c = require "ltrain.c"
local child = require "spec.cli.child"
local time_slices = require "ltrain.apps.dashboard.time_slices"

local METRICS <const> = 3000

describe("the dashboard", function()
  it("answers others between the pieces of a long answer, and whole in the end", function()
    local folder = child.folder()
    for _, name in ipairs { "a", "b" } do
      local names, values = {}, {}
      for k = 1, METRICS do names[k], values[k] = "m" .. k, "0.5" end
      assert(c.io.make_folder(folder .. "/" .. name))
      child.write(("%s/%s/metrics.csv"):format(folder, name), ("epoch,step,%s\n0,0,%s\n"):format(
        table.concat(names, ","), table.concat(values, ",")))
    end
    local server <const> = assert(Dashboard.open({ folder }, { port = 0, warn = error }))
    server.http:close()
    local ids, asked, answered, bodies = {}, {}, {}, {}
    for k, run in ipairs(server.catalogue.list) do ids[k] = run.id end
    local function ask(id, target)
      asked[#asked + 1] = { { "Host", "127.0.0.1:" .. server.guard.port },
        { "Cookie", server.guard.cookie .. "=" .. server.guard.session },
        id = id, method = "GET", target = target }
    end
    server.http = {
      wait = function() return table.remove(asked, 1) end,
      answer = function(_, id, status, _, body)
        assert.equal(200, status, body)
        answered[#answered + 1], bodies[id] = id, body
      end,
    }
    ask("diff", ("/api/diff?a=%s&b=%s"):format(ids[1], ids[2]))
    ask("about", "/api/about")
    for _ = 1, 10000 do
      if #answered == 2 then break end
      assert(server:step(function() return false end))
    end
    child.remove(folder)
    assert.same({ "about", "diff" }, answered)
    local diff = c.io.json_decode(bodies.diff, { plain = true })
    assert.equal(METRICS, #diff.metrics)
    assert.same({ "m1", 0.5 }, { diff.metrics[1].name, diff.metrics[1].b.last })
  end)
end)

describe("pieces.pause", function()
  it("does nothing outside of a piece, and before its time is over", function()
    time_slices.pause()
    local ended, ok = time_slices.run(coroutine.create(time_slices.pause))
    assert.same({ true, true }, { ended, ok })
  end)

  it("passes on what is raised", function()
    local ended, ok, failure = time_slices.run(coroutine.create(function() error({ 404 }, 0) end))
    assert.same({ true, false, { 404 } }, { ended, ok, failure })
  end)
end)
