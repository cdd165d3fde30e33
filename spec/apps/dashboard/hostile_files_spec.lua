-- spec/apps/dashboard/hostile_files_spec.lua: folders of runs that hold what no fit has written:
-- all that is asked of them is answered, with nothing of what is not theirs.
-- tags: slow
local c = require "ltrain.c"
local child = require "spec.cli.child"
local servers = require "spec.apps.dashboard.server"

local CSV <const> = "epoch,step,loss\n0,0,0.5\n0,1,0.25\n"
local VIEWS <const> = { "", "/metrics", "/metrics?x=time", "/console", "/system", "/layers",
  "/media?kind=image", "/media?kind=text", "/media?kind=histogram", "/media?kind=sample" }
local FILES <const> = { "run.json", "console.log", "hparams.json", "system.csv", "layers.jsonl" }

-- A row: the name of the folder, and what is in it: path -> text; then a command that is run there.
local RUNS <const> = {
  { "<img src=x onerror=alert(1)>", {} },
  { "a\nline\r\tbreak", {} },
  { "no\xFF\xFEutf8", {} },
  { "quo\"te's\\ &amp; %2e%2e $(touch x)", {} },
  { "a line of media without an end", { ["media/index.jsonl"] =
    '{"kind":"text","name":"t","step":1,"text":"' .. ("x"):rep(3 << 20) } },
  { "a line of layers without an end", { ["layers.jsonl"] = '{"step":1' .. (" "):rep(3 << 20) } },
  { "a row without an end", { ["metrics.csv"] = CSV .. "0,2," .. ("9"):rep(3 << 20) } },
  { "100,000 columns", { ["metrics.csv"] = "epoch,step" .. (",a"):rep(100000) .. "\n" } },
  { "a name of 5 MiB", { ["metrics.csv"] = "epoch,step," .. ("a"):rep(5 << 20) .. "\n0,0,1\n" } },
  { "columns of one name", { ["metrics.csv"] = "epoch,step,a,a,,epoch\n0,0,1,2,3,4\n" } },
  { "odd numbers", { ["metrics.csv"] = "epoch,step,loss\n0,0,1e400\n0,1,-1e400\n0,2,"
    .. ("3"):rep(5000) .. "\n99999999999999999999,99999999999999999999,1\n-5,-7,0x10\n"
    .. "1.5,2.5,nan\n0,9,abc\n0,10\n0,11,1,2,3\n0,12,\n0,13,1e-400\n" } },
  { "zeros", { ["metrics.csv"] = "epoch,step,lo\0ss\n0,0,1\0\n" } },
  { "deep JSON", { ["run.json"] = ("["):rep(100000), ["hparams.json"] = ('{"a":'):rep(50000) } },
  { "other types", { ["hparams.json"] = '[1,{"a":[null]}]', ["run.json"] = [=[{"format":1,
    "status":[1],"started":"x","ended":{},"epoch":"e","ranks":"many","threads":{},"command":"c",
    "script":{"a":1},"error":{"a":1},"process":"p","loops":{"a":1},"devices":"cpu",
    "version":[]}]=] } },
  { "a process that is none", { ["run.json"] = ([=[{"format":1,"status":"running","started":1e308,
    "ended":-1e308,"ranks":1e9,"command":[[1],null],"script":"../../../etc/passwd","loops":[1,"a"],
    "process":{"host":%q,"pid":"1 ../..","ticks":[]}}]=]):format(c.runtime.hostname()) } },
  { "media of other types", { ["media/index.jsonl"] = [=[{
[]
5
{"kind":5,"name":[],"step":"x"}
{"kind":"image","name":"a","step":1,"files":{"a":1}}
{"kind":"image","name":"a","step":1,"files":[1,null,[]]}
{"kind":"text","name":"t","step":-1e300,"text":{"a":1}}
{"kind":"histogram","name":"h","step":1,"edges":"no","counts":[1,"2",null]}
{"kind":"sample","name":"loss","value":"<b>","usual":[],"files":5,"samples":"no"}
{"kind":"sample","name":"loss","samples":[1,null,{"index":"x","loss":[],"text":5}]}
]=] } },
  { "layers of other types", { ["system.csv"] = "epoch,step,time\n0,0,nan\n0,1,inf\n",
    ["system.rank1.csv"] = "garbage\n", ["layers.jsonl"] = [=[{
[]
{"step":1,"layers":5}
{"step":1,"layers":[1,null,{"name":5},{"name":"a","shape":"x","weight":5},{"name":"b","shape":
{"step":2,"layers":[{"name":"b","shape":[1,"x"],"weight":{"mean":1e999,"edges":5,"counts":"x"}}]}
{"step":3,"layers":[{"name":"b","weight":{"mean":"x","edges":[1],"counts":[1,2]},"grad":[]}]}
]=] } },
  { "links", {}, "for f in " .. table.concat(FILES, " ") .. "; do ln -s ../../secret $f; done; "
    .. "for f in code checkpoints media; do ln -s ../../folder $f; done; ln -s ../../secret "
    .. "control.sock" },
  { "pipes", {}, "mkfifo " .. table.concat(FILES, " ") },
  { "folders", {}, "mkdir " .. table.concat(FILES, " ") },
  { "unreadable", { ["run.json"] = "{}" }, "chmod 0 run.json" },
}

describe("a dashboard over folders of others", function()
  local folder, server, runs
  local why = servers.missing()

  setup(function()
    if why then return end
    folder = child.folder()
    child.write(folder .. "/secret", "SECRET TEXT")
    assert(c.io.make_folder(folder .. "/folder"))
    child.write(folder .. "/folder/index.jsonl", "SECRET TEXT\n")
    child.write(folder .. "/folder/a.lua", "SECRET TEXT\n")
    for _, row in ipairs(RUNS) do
      local run = folder .. "/ltrain_logs/" .. row[1]
      assert(c.io.make_folder(run))
      child.write(run .. "/metrics.csv", CSV)
      for path, text in pairs(row[2]) do
        if path:find "/" then assert(c.io.make_folder((run .. "/" .. path):match "(.*)/")) end
        child.write(run .. "/" .. path, text)
      end
      if row[3] then
        child.write(folder .. "/do.sh", row[3])
        assert(os.execute(("cd \"$(printf %%s '%s')\" && sh '%s/do.sh'"):format(
          run:gsub("'", "'\\''"), folder)))
      end
    end
    server = servers.start(folder, { "--dashboard-control" })
    server:enter()
    runs = server:json "/api/runs?limit=1000".runs
  end)
  teardown(function()
    if server then server:stop() end
    if folder then child.remove(folder) end
  end)

  it("lists them all", function()
    if why then pending(why) return end
    assert.equal(#RUNS, #runs)
    local names = {}
    for _, run in ipairs(runs) do names[run.name] = run end
    assert.is_table(names["<img src=x onerror=alert(1)>"])
    assert.is_table(names["no\u{FFFD}\u{FFFD}utf8"])
    assert.equal("unknown", names["other types"].status)
    assert.equal("running", names["a process that is none"].status)
    assert.matches("run.json", names["deep JSON"].problem)
  end)

  it("answers for each of them, with nothing that is elsewhere", function()
    if why then pending(why) return end
    for _, run in ipairs(runs) do
      for _, view in ipairs(VIEWS) do
        local status, body = server:ask(("/api/run/%s%s"):format(run.id, view))
        local said = ("%s %s: %s %s"):format(run.name, view, status, (body or ""):sub(1, 200))
        assert(status == 200 or status == 404, said)
        assert.is_table(c.io.json_decode(body, { plain = true }), said)
        assert.is_nil(body:find("SECRET", 1, true), said)
        assert.is_nil(body:find("traceback", 1, true), said)
        assert.is_true(#body < 4 << 20, said)
      end
    end
    assert.equal(200, (server:ask "/api/about"))
  end)

  it("compares each with the next, and asks none of them to stop", function()
    if why then pending(why) return end
    local origin = ("Origin: http://127.0.0.1:%d\r\n"):format(server.port)
    for i, run in ipairs(runs) do
      local other = runs[i % #runs + 1]
      local status, body = server:ask(("/api/diff?a=%s&b=%s"):format(run.id, other.id))
      assert.equal(200, status, run.name)
      assert.is_nil(body:find("SECRET", 1, true), run.name)
      assert.equal(409, (server:ask(("/api/run/%s/stop"):format(run.id), "POST", origin)))
    end
  end)

  it("follows metrics that become a folder, a pipe, a link, and a file again", function()
    if why then pending(why) return end
    local run = folder .. "/ltrain_logs/followed"
    assert(c.io.make_folder(run))
    child.write(run .. "/metrics.csv", CSV)
    child.write(run .. "/run.json", '{"format":1,"status":"finished"}')
    local id = server:id "followed"
    local target = ("/api/run/%s/metrics"):format(id)
    for _, command in ipairs { "mkdir metrics.csv", "mkfifo metrics.csv",
      "ln -s ../../secret metrics.csv", "true", ": >metrics.csv" } do
      assert.same({ 0.5, 0.25 }, server:json(target).series[1].y)
      assert(os.execute(("cd '%s' && rm metrics.csv && %s"):format(run, command)))
      local status, body = server:ask(target)
      assert(status == 200 or status == 404, command .. ": " .. tostring(status))
      assert.is_nil(body:find("0.25", 1, true), command .. ": " .. body)
      assert(os.execute(("rm -rf '%s/metrics.csv'"):format(run)))
      child.write(run .. "/metrics.csv", CSV)
    end
  end)

  it("serves others while hundreds listen", function()
    if why then pending(why) return end
    local script = ([[for i in $(seq 300); do eval "exec $((i + 10))<>/dev/tcp/127.0.0.1/%d";
      printf 'GET /api/events?run=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nCookie: %s\r\n\r\n' ]]
      .. [[>&$((i + 10)); done; touch begun; sleep 20]]):format(server.port, runs[1].id,
      server.port, server.cookie)
    child.write(folder .. "/many.sh", script)
    os.execute(("cd '%s' && (ulimit -n 1024; timeout 90 bash many.sh >many.out 2>&1 & echo $! "
      .. ">many.pid)"):format(folder))
    servers.until_true("300 that listen", function()
      return io.open(folder .. "/begun") or servers.read(folder .. "/many.out") ~= ""
    end)
    -- While places are short a connection that has not asked yet is cut off: on a busy machine
    -- bash may connect some time before it asks.
    for _ = 1, 3 do
      servers.until_true("an answer", function() return (server:ask "/api/about") == 200 end)
    end
    os.execute(("kill $(cat '%s/many.pid')"):format(folder))
    assert.equal(200, (server:ask "/api/about"))
  end)
end)

describe("the lines of a text that grows", function()
  it("are those that have ended", function()
    local complete_lines = require "ltrain.core.complete_lines"
    local found = {}
    for line, after in complete_lines "a\n\nbc\nrest" do found[#found + 1] = line .. after end
    assert.same({ "a3", "4", "bc7" }, found)
    for _ in complete_lines(("x"):rep(1 << 20)) do error "no line has ended" end
  end)
end)
