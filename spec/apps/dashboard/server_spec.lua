-- spec/apps/dashboard/server_spec.lua: the dashboard's server over folders that change under it.
-- tags: slow, threads, waits
local c = require "ltrain.c"
local child = require "spec.cli.child"
local number_text = require "ltrain.loggers.number_text"
local servers = require "spec.apps.dashboard.server"

-- The numbers of a column of a metrics.csv, as texts.
local function column(text, name)
  local names, list, at = {}, {}, nil
  for line in text:gmatch "[^\n]+" do
    local fields = {}
    for field in (line .. ","):gmatch "([^,]*)," do fields[#fields + 1] = field end
    if #names == 0 then
      names = fields
      for i, one in ipairs(names) do at = one == name and i or at end
    elseif fields[at] ~= "" then
      list[#list + 1] = { fields[2], fields[at] }
    end
  end
  return list
end

-- A metrics.csv of `rows` rows: spikes, NaNs, numbers of all sizes.
local function metrics_text(rows)
  local lines = { 'epoch,step,loss,"a ""b"", c",rare' }
  for i = 0, rows - 1 do
    local loss = number_text(math.exp(-i / rows) + math.sin(i * 12.9898) * 0.1)
    if i == rows // 3 then loss = "1e+30" end
    if i == rows // 2 then loss = "nan" end
    if i == rows // 2 + 1 then loss = "-inf" end
    lines[#lines + 1] = ("%d,%d,%s,%s,%s"):format(i // 100, i, loss, i % 2 == 0 and "" or i * 3,
      i % 1000 == 0 and number_text(i / 7) or "")
  end
  return table.concat(lines, "\n") .. "\n"
end

describe("the dashboard's server", function()
  local folder, server
  local why = servers.missing()

  before_each(function()
    folder = child.folder()
    assert(os.execute(("mkdir -p '%s/ltrain_logs/version_0'"):format(folder)))
    child.write(folder .. "/ltrain_logs/version_0/metrics.csv", "epoch,step,loss\n0,0,0.5\n")
  end)
  after_each(function()
    if server then server:stop() end
    server = nil
    child.remove(folder)
  end)

  local function run_file(name) return folder .. "/ltrain_logs/version_0/" .. name end
  local function start(arguments)
    server = servers.start(folder, arguments)
    server:enter()
    return server, server:id "version_0"
  end

  it("gives the numbers of metrics.csv digit by digit", function()
    if why then pending(why) return end
    local text = metrics_text(300)
    child.write(run_file "metrics.csv", text)
    local _, id = start()
    for _, name in ipairs { "loss", 'a "b", c', "rare" } do
      local escaped = name:gsub("[^%w]", function(ch) return ("%%%02x"):format(ch:byte()) end)
      local _, body = server:ask(("/api/run/%s/metrics?name=%s"):format(id, escaped))
      local steps, values = body:match '"step":%[(.-)%],"x":.-"y":%[(.-)%]'
      local expected = {}
      for i, one in ipairs(column((text:gsub('"a ""b"", c"', "odd")),
        name:find "odd" and name or name:find "a" == 1 and "odd" or name)) do
        expected[i] = one
      end
      local i = 0
      for value in values:gmatch "[^,]+" do
        i = i + 1
        assert.equal(expected[i][2], (value:gsub('"', "")))
      end
      assert.equal(#expected, i)
      assert.equal(expected[#expected][1], steps:match "(%d+)$")
    end
  end)

  it("leaves extremes and NaNs among the points of a long run", function()
    if why then pending(why) return end
    child.write(run_file "metrics.csv", metrics_text(100000))
    local _, id = start()
    local answer = server:json(("/api/run/%s/metrics?name=loss&points=2000"):format(id))
    local series = answer.series[1]
    assert.equal(100000, series.count)
    assert.equal(100000, answer.rows)
    assert.is_true(series.decimated)
    assert.is_true(#series.y <= 2000 and #series.y > 1000)
    local seen = {}
    for i, y in ipairs(series.y) do seen[tostring(y)] = series.step[i] end
    assert.equal(33333, seen["1e+30"])
    assert.equal(50000, seen.nan)
    assert.equal(0, series.step[1])
    assert.equal(99999, series.step[#series.step])
    -- A part of it, whole.
    series = server:json(("/api/run/%s/metrics?name=loss&from=50&to=149&points=100"):format(id))
      .series[1]
    assert.equal(100, series.count)
    assert.is_false(series.decimated)
    assert.equal(50, series.x[1])
    -- One that is rare keeps all.
    series = server:json(("/api/run/%s/metrics?name=rare"):format(id)).series[1]
    assert.equal(100, #series.y)
    series = server:json(("/api/run/%s/metrics?name=rare&x=epoch&from=20&to=40"):format(id))
      .series[1]
    assert.same({ 20, 30, 40 }, series.x)
  end)

  it("follows a file that grows, is cut, written again, and goes", function()
    if why then pending(why) return end
    local _, id = start()
    local path = run_file "metrics.csv"
    local function look() return server:json(("/api/run/%s/metrics"):format(id)) end
    local first = look()
    assert.same({ 0.5 }, first.series[1].y)
    local file = assert(io.open(path, "ab"))
    file:write "0,1,0.4\n0,2,0.3"
    file:flush()
    assert.same({ 0.5, 0.4 }, look().series[1].y) -- half a row is none
    file:write "5\n"
    file:close()
    local grown = look()
    assert.same({ 0.5, 0.4, 0.35 }, grown.series[1].y)
    assert.equal(first.generation, grown.generation)
    -- A column more: the same rows, written again.
    child.write(path .. "2", "epoch,step,loss,acc\n0,0,0.5,\n0,1,0.4,\n0,2,0.35,\n0,3,0.3,0.9\n")
    os.rename(path .. "2", path)
    local wide = look()
    assert.equal(first.generation, wide.generation)
    assert.equal(4, wide.rows)
    assert.same({ 0.9 }, wide.series[2].y)
    -- Resumed: rows are cut.
    child.write(path .. "2", "epoch,step,loss,acc\n0,0,0.5,\n0,1,0.45,\n")
    os.rename(path .. "2", path)
    local cut = look()
    assert.not_equal(first.generation, cut.generation)
    assert.same({ 0.5, 0.45 }, cut.series[1].y)
    -- Another text of the same length in the same file.
    file = assert(io.open(path, "r+b"))
    file:write "epoch,step,loss,acc\n0,0,0.7,\n0,1,0.65,\n0,2,0.6,\n"
    file:close()
    local other = look()
    assert.same({ 0.7, 0.65, 0.6 }, other.series[1].y)
    assert.not_equal(cut.generation, other.generation)
    os.execute(("rm -r '%s'"):format(folder .. "/ltrain_logs/version_0"))
    assert.equal(404, (server:ask("/api/run/" .. id)))
    servers.until_true("an empty list", function()
      return server:json "/api/runs".total == 0
    end)
  end)

  it("shows runs that cannot be read, and says why", function()
    if why then pending(why) return end
    child.write(run_file "run.json", '{"format": 99}')
    child.write(run_file "hparams.json", "{]")
    local _, id = start()
    local run = server:json "/api/runs".runs[1]
    assert.matches("has format 99", run.problem)
    assert.equal("unknown", run.status)
    assert.equal(0.5, run.last.loss)
    child.write(run_file "metrics.csv", "\0\1\2\n\xFF,\xFE\n")
    local status, body = server:ask(("/api/run/%s/metrics"):format(id))
    assert.equal(404, status)
    assert.matches("must begin with epoch,step", body)
    child.write(run_file "console.log", "a\xFFb\n" .. ("\u{20AC}"):rep(10))
    local console = server:json(("/api/run/%s/console"):format(id))
    assert.equal("a\u{FFFD}b\n" .. ("\u{20AC}"):rep(10), console.text)
  end)

  it("does not say of a run that was copied while it went on that it is running", function()
    if why then pending(why) return end
    child.write(run_file "run.json",
      '{"format":1,"status":"running","process":{"host":"elsewhere","pid":1,"ticks":1}}')
    start()
    assert.equal("running", server:json "/api/runs".runs[1].status)
    assert(os.execute(("touch -d '11 minutes ago' '%s' '%s'"):format(run_file "run.json",
      run_file "metrics.csv")))
    servers.until_true("unknown", function()
      return server:json "/api/runs".runs[1].status == "unknown"
    end)
    child.write(run_file "console.log", "it goes on\n")
    servers.until_true("running", function()
      return server:json "/api/runs".runs[1].status == "running"
    end)
  end)

  it("names runs of several folders below the folder that has all of these", function()
    if why then pending(why) return end
    assert(os.execute(("cd '%s' && mkdir -p sweeps/one && cp -r ltrain_logs/version_0 sweeps/one")
      :format(folder)))
    local function names_in(...)
      server = servers.start(folder, { ... })
      server:enter()
      local list = {}
      for i, run in ipairs(server:json("/api/runs?sort=name&order=asc").runs) do
        list[i] = run.name
      end
      server = server:stop()
      return table.concat(list, " ")
    end
    assert.equal("ltrain_logs/version_0 sweeps/one/version_0",
      names_in(folder .. "/ltrain_logs", folder .. "/sweeps"))
    assert.equal("version_0", names_in(folder .. "/ltrain_logs/version_0"))
  end)

  it("lists, filters and sorts", function()
    if why then pending(why) return end
    for i = 1, 4 do
      os.execute(("mkdir '%s/ltrain_logs/version_%d'"):format(folder, i))
      child.write(("%s/ltrain_logs/version_%d/metrics.csv"):format(folder, i),
        ("epoch,step,loss\n0,%d,%s\n"):format(i, i == 3 and "nan" or tostring(i * 3 % 5)))
      child.write(("%s/ltrain_logs/version_%d/hparams.json"):format(folder, i),
        ('{"lr": %g, "model": {"width": %d}}'):format(i / 10, i))
    end
    start()
    local function names(query)
      local list = {}
      for i, run in ipairs(server:json("/api/runs?" .. query).runs) do list[i] = run.name end
      return table.concat(list, " "):gsub("version_", "")
    end
    assert.equal("0 1 2 3 4", (names "sort=name&order=asc"))
    assert.equal("4 3 2 1 0", (names "sort=name"))
    assert.equal("2 3", (names "sort=name&order=asc&offset=2&limit=2"))
    assert.equal("0 2 4 1 3", (names "sort=metric:loss&order=asc")) -- 0.5 1 2 3, a NaN last
    assert.equal("2", (names "filter=model.width%3d2"))
    assert.equal("1 2 3 4", (names "sort=name&order=asc&filter=LR%3d%20version"))
    local all = server:json "/api/runs"
    assert.same({ "lr", "model.width" }, all.hparams)
    assert.equal(5, all.total)
  end)

  it("sends rows, resets and changes to those who watch", function()
    if why then pending(why) return end
    local _, id = start()
    local command = ("timeout 8 bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; printf \"GET /api/events?"
      .. "run=%s HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\nCookie: %s\\r\\n\\r\\n\" >&3; cat <&3' "
      .. ">'%s/events' 2>/dev/null &"):format(server.port, id, server.port, server.cookie, folder)
    assert(os.execute(command))
    local function wait_for(text)
      return servers.until_true(text, function()
        return servers.read(folder .. "/events"):find(text, 1, true)
      end)
    end
    wait_for '"rows":1'
    local file = assert(io.open(run_file "metrics.csv", "ab"))
    file:write "0,1,0.25\n"
    file:close()
    wait_for '"y":[0.25]'
    child.write(run_file "console.log", "hello\n")
    wait_for 'event: changed\ndata: {"id":"'
    child.write(run_file "metrics.csv", "epoch,step,loss\n0,0,1\n")
    wait_for "event: reset"
    os.execute(("mkdir '%s/ltrain_logs/version_9'"):format(folder))
    child.write(folder .. "/ltrain_logs/version_9/metrics.csv", "epoch,step\n")
    wait_for '"name":"version_9"'
    os.execute(("rm -r '%s/ltrain_logs/version_9'"):format(folder))
    wait_for '"gone":["'
  end)

  it("keeps answering while others are slow, or many", function()
    if why then pending(why) return end
    local _, id = start()
    child.write(run_file "metrics.csv", metrics_text(10000))
    -- 200 that begin a request and do not end it, and some that never read a large answer.
    local script = ([[for i in $(seq 200); do eval "exec $((i + 10))<>/dev/tcp/127.0.0.1/%d";
      printf 'GET / HTTP/1.1\r\nHo' >&$((i + 10)); done; for i in $(seq 20); do
      exec 5<>/dev/tcp/127.0.0.1/%d; printf 'GET /api/run/%s/metrics?points=20000 HTTP/1.1\r\n]]
      .. [[Host: 127.0.0.1:%d\r\nCookie: %s\r\n\r\n' >&5; done; touch begun; sleep 20]])
      :format(server.port, server.port, id, server.port, server.cookie)
    child.write(folder .. "/slow.sh", script)
    os.execute(("cd '%s' && (ulimit -n 1024; timeout 20 bash slow.sh >slow.out 2>&1 & echo $! "
      .. ">slow.pid)"):format(folder))
    servers.until_true("the slow clients", function()
      return io.open(folder .. "/begun") or servers.read(folder .. "/slow.out") ~= ""
    end)
    for _ = 1, 5 do assert.equal(200, (server:ask "/api/about")) end
    os.execute(("kill $(cat '%s/slow.pid')"):format(folder))
    -- Many at once, each with the whole answer.
    local all = ("for i in $(seq 16); do (timeout 10 bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; "
      .. "printf \"GET /api/run/%s/metrics?points=5000 HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n"
      .. "Cookie: %s\\r\\nConnection: close\\r\\n\\r\\n\" >&3; cat <&3' | tail -c 20 >'%s/'$i.part"
      .. ") & done; wait"):format(server.port, id, server.port, server.cookie, folder)
    assert(os.execute(("bash -c %s"):format("'" .. all:gsub("'", "'\\''") .. "'")))
    for i = 1, 16 do assert.matches("}$", servers.read(("%s/%d.part"):format(folder, i))) end
    assert.is_true(servers.is_alive(server.pid))
  end)

  it("finds a port of its own beside another; a port that is taken is an error", function()
    if why then pending(why) return end
    start()
    local second = servers.start(folder)
    second:enter()
    assert.not_equal(server.port, second.port)
    assert.equal(200, (server:ask "/api/about")) -- the cookies do not meet
    assert.equal(200, (second:ask "/api/about"))
    second:stop()
    local status, _, err = child.run({ "dashboard", "--port", tostring(server.port) },
      { dir = folder })
    assert.equal(1, status)
    assert.matches("dashboard: port %d+ of 127.0.0.1 is in use", err)
    status, _, err = child.run({ "dashboard", "nowhere" }, { dir = folder })
    assert.equal(1, status)
    assert.matches("nowhere: there is no such folder", err)
  end)

  it("ends by Ctrl-C without a word", function()
    if why then pending(why) return end
    start()
    os.execute("kill -INT " .. server.pid)
    servers.until_true("its end", function() return not servers.is_alive(server.pid) end)
    local text = servers.read(folder .. "/dashboard.out")
    assert.is_nil(text:find "interrupted")
    assert.is_nil(text:find "traceback")
  end)

  it("finds a hyper-parameter by its whole value", function()
    if why then pending(why) return end
    child.write(run_file "hparams.json", '{"lr": 0.01, "net": {"width": 16}}')
    start()
    for filter, found in pairs { ["lr=0.01"] = 1, ["lr=1e-2"] = 1, ["lr=0.0"] = 0, ["lr=0.1"] = 0,
      ["lr=0.011"] = 0, ["net.width=16"] = 1, ["width=16"] = 1, ["idth=16"] = 0, ["lr"] = 1 } do
      assert.equal(found, server:json("/api/runs?filter=" .. filter:gsub("=", "%%3d")).matched,
        filter)
    end
  end)

  it("writes tags and a note into the run's folder, where control is on alone", function()
    if why then pending(why) return end
    local _, id = start { "--dashboard-control" }
    local origin = ("Origin: http://127.0.0.1:%d\r\n"):format(server.port)
    local path = ("/api/run/%s/labels?tags=good,a%%20b,good&note=the%%20first%%0aone"):format(id)
    local status, body = server:ask(path, "POST", origin)
    assert.same({ 202, '{"note":"the first one","tags":["good","a-b"]}' }, { status, body })
    local one = server:json("/api/run/" .. id)
    assert.same({ { "good", "a-b" }, "the first one" }, { one.tags, one.note })
    assert.equal('{"note":"the first one","tags":["good","a-b"]}\n',
      servers.read(run_file "labels.json"))
    assert.equal(1, server:json("/api/runs?filter=tag%3dgood").matched)
    assert.equal(0, server:json("/api/runs?filter=tag%3dgoo").matched)
    assert.equal(403, (server:ask(path, "POST", "")))
    child.write(run_file "labels.json", '{"tags": [1, {}, "x"], "note": []}')
    assert.same({ { "x" } }, { server:json("/api/run/" .. id).tags })
    server:stop()
    local _, again = start()
    assert.equal(403, (server:ask(path, "POST", ("Origin: http://127.0.0.1:%d\r\n")
      :format(server.port))))
    assert.same({ "x" }, server:json("/api/run/" .. again).tags)
  end)

  it("follows a fit, has it save and stop, and notices that one was killed", function()
    if why then pending(why) return end
    child.write(folder .. "/model.lua", servers.MODEL)
    local fit = servers.spawn(folder, "fit", { "run", "model.lua", "--dashboard_control",
      "--default_root_dir", folder, "--run_dir", folder .. "/ltrain_logs/fit" })
    servers.until_true("rows", function()
      return #servers.read(folder .. "/ltrain_logs/fit/metrics.csv") > 200
    end)
    start { "--dashboard-control" }
    local id = server:id "fit"
    local origin = ("Origin: http://127.0.0.1:%d\r\n"):format(server.port)
    servers.until_true("that it listens", function()
      return server:json("/api/run/" .. id).control
    end)
    local mode = io.popen(("stat -c '%%a %%F' '%s/ltrain_logs/fit/control.sock'"):format(folder))
    assert.equal("600 socket", mode:read "l")
    mode:close()
    local status, body = server:ask(("/api/run/%s/save"):format(id), "POST", origin)
    assert.equal(202, status, body)
    servers.until_true("a checkpoint", function()
      for _, one in ipairs(server:json("/api/run/" .. id).checkpoints) do
        if one.file:find "^asked%-epoch" then return true end
      end
    end)
    assert.equal("running", server:json("/api/run/" .. id).status)
    assert.equal(1, #server:json(("/api/run/%s/system"):format(id)).ranks)
    assert.equal(202, (server:ask(("/api/run/%s/stop"):format(id), "POST", origin)))
    servers.until_true("its end", function() return not servers.is_alive(fit) end)
    local run = server:json("/api/run/" .. id)
    assert.equal("interrupted", run.status)
    assert.is_false(run.control)
    assert.equal(409, (server:ask(("/api/run/%s/stop"):format(id), "POST", origin)))
    assert.is_nil(io.open(folder .. "/ltrain_logs/fit/control.sock"))
    assert.equal(64, #run.info.data_sha256)
    local times = server:json(("/api/run/%s/metrics?x=time"):format(id)).series[1].x
    assert.is_true(times[#times] > 0 and times[#times] < 60)
    local image = server:json(("/api/run/%s/media?kind=image"):format(id)).entries[1]
    if image then
      local _, bytes, head = server:ask(image.files[1])
      assert.matches("^\x89PNG", bytes)
      assert.truthy(head:find("Content-Type: image/png", 1, true))
    end
    -- Killed, resumed in the same folder.
    fit = servers.spawn(folder, "fit", { "run", "model.lua", "--ckpt_path",
      folder .. "/ltrain_logs/fit/checkpoints/interrupted.ckpt", "--run_dir",
      folder .. "/ltrain_logs/fit" })
    servers.until_true("running", function()
      return server:json("/api/run/" .. id).status == "running"
    end)
    os.execute("kill -9 " .. fit)
    servers.until_true("killed", function()
      return server:json("/api/run/" .. id).status == "killed"
    end)
    assert.equal(409, (server:ask(("/api/run/%s/stop"):format(id), "POST", origin)))
  end)

  it("has ranks save and stop together, and shows what each waits", function()
    if why then pending(why) return end
    child.write(folder .. "/model.lua", (servers.MODEL:gsub("local loader = {}\nfor.-end\n", [[
local loader = lt.data.DataLoader(set, {batch_size = 4})
]]):gsub("training_step%(x%)", "training_step(batch)\n  local x = batch.x")))
    local fit = servers.spawn(folder, "fit", { "run", "model.lua", "--dashboard_control",
      "--devices", "2", "--accelerator", "cpu", "--run_dir", folder .. "/ltrain_logs/fit" })
    servers.until_true("rows of rank 1", function()
      return select(2, servers.read(folder .. "/ltrain_logs/fit/system.rank1.csv")
        :gsub("\n", "")) >= 3
    end)
    start { "--dashboard-control" }
    local id = server:id "fit"
    local ranks = server:json(("/api/run/%s/system"):format(id)).ranks
    assert.equal(2, #ranks)
    assert.equal(1, ranks[2].rank)
    assert.is_true(ranks[1].wait >= 0 and ranks[2].wait <= 1)
    servers.until_true("times of steps", function()
      ranks = server:json(("/api/run/%s/system"):format(id)).ranks
      return ranks[1].step_time and ranks[1].slowness and ranks[2].slowness and ranks[2].host
    end)
    assert.near(1, ranks[1].slowness * ranks[2].slowness, 1e-6)
    local origin = ("Origin: http://127.0.0.1:%d\r\n"):format(server.port)
    assert.equal(202, (server:ask(("/api/run/%s/save"):format(id), "POST", origin)))
    servers.until_true("a checkpoint", function()
      for _, one in ipairs(server:json("/api/run/" .. id).checkpoints) do
        if one.file:find "^asked%-epoch" then return true end
      end
    end)
    assert.equal(202, (server:ask(("/api/run/%s/stop"):format(id), "POST", origin)))
    servers.until_true("its end", function() return not servers.is_alive(fit) end)
    assert.equal("interrupted", server:json("/api/run/" .. id).status)
  end)

  it("is started beside a run, and ends with it", function()
    if why then pending(why) return end
    child.write(folder .. "/model.lua", servers.MODEL)
    local fit = servers.spawn(folder, "dashboard", { "run", "model.lua", "--dashboard" })
    local address = servers.until_true("the address", function()
      return servers.read(folder .. "/dashboard.out"):match "http://127%.0%.0%.1:%d+/%?token=%x+"
    end)
    server = setmetatable({ folder = folder, at = child.folder(), pid = fit,
      port = tonumber(address:match ":(%d+)/"), token = address:match "=(%x+)" }, servers)
    server:enter()
    local id = server:id "version_1"
    local run = server:json("/api/run/" .. id)
    assert.equal("running", run.status)
    assert.is_false(run.control)
    os.execute("kill -9 " .. fit)
    servers.until_true("its end", function() return not server:ask "/api/about" end)
  end)

  it("says at the end of a run how to see it again, or why nothing was shown", function()
    if why then pending(why) return end
    child.write(folder .. "/model.lua", (servers.MODEL:gsub("1000000", "1")))
    local status, _, err = child.run({ "run", "model.lua", "--dashboard" }, { dir = folder })
    assert.equal(0, status, err)
    assert.matches("`ltrain dashboard ltrain_logs` shows it again", err)
    status, _, err = child.run({ "run", "model.lua", "--dashboard", "--logger", "false" },
      { dir = folder })
    assert.equal(0, status, err)
    assert.matches("there was nothing to show: no fit had a folder", err)
  end)

  it("says what differs between two runs", function()
    if why then pending(why) return end
    for i, lr in ipairs { "0.1", "0.2" } do
      local run = ("%s/ltrain_logs/run_%d"):format(folder, i)
      os.execute(("mkdir -p '%s/code'"):format(run))
      child.write(run .. "/metrics.csv", ("epoch,step,loss\n0,0,3\n0,1,%d\n"):format(i))
      child.write(run .. "/hparams.json", ('{"lr": %s, "width": 8}'):format(lr))
      child.write(run .. "/run.json", ('{"format":1,"status":"finished","seed":%d,"data_sha256":'
        .. '"%s"}'):format(i, "ab"))
      child.write(run .. "/code/model.lua", ("a\nb\nc\nd\ne\nlr = %s\nf\ng\nh\ni\nj\n"):format(lr))
    end
    start()
    local answer = server:json(("/api/diff?a=%s&b=%s"):format(server:id "run_1",
      server:id "run_2"))
    assert.same({ { name = "lr", a = 0.1, b = 0.2 } }, answer.options)
    assert.equal(1, answer.same_options)
    assert.is_true(answer.data.same)
    assert.is_false(answer.code.same)
    local text = {}
    for i, line in ipairs(answer.code.files[1].lines) do text[i] = line.kind .. line.text end
    assert.equal("@| c| d| e|-lr = 0.1|+lr = 0.2| f| g| h", table.concat(text, "|"))
    assert.same({ count = 2, last = 2, best = 2, best_step = 1, mode = "min", name = "loss" },
      answer.metrics[1].b)
  end)
end)

describe("lines that differ", function()
  local between = require "ltrain.apps.dashboard.line_diff".between

  -- What the script makes of the first text.
  local function apply(list)
    local first, second = {}, {}
    for _, line in ipairs(list) do
      if line.kind ~= "+" then first[#first + 1] = line.text end
      if line.kind ~= "-" then second[#second + 1] = line.text end
    end
    return table.concat(first, "\n"), table.concat(second, "\n")
  end

  it("turn one text into the other, with as few changes as there are", function()
    math.randomseed(7)
    for _ = 1, 300 do
      local a, b = {}, {}
      for i = 1, math.random(0, 6) do a[i] = ("xyz"):sub(math.random(3)):sub(1, 1) end
      for i = 1, math.random(0, 6) do b[i] = ("xyz"):sub(math.random(3)):sub(1, 1) end
      local x, y = table.concat(a, "\n"), table.concat(b, "\n")
      local list = between(x, y)
      if x == y then
        assert.equal(0, #list)
      elseif #a > 0 and #b > 0 and list[1].kind ~= "@" and list[#list].kind ~= "@" then
        local first, second = apply(list)
        assert.is_true(x:sub(1, #first) == first or x:find(first, 1, true) ~= nil)
        assert.is_true(y:find(second, 1, true) ~= nil)
      end
    end
    assert.equal(0, #between("a\nb", "a\nb\n"))
  end)
end)

describe("a file of metrics as it grows", function()
  it("is read alike in any pieces", function()
    local text = metrics_text(500)
    local whole = c.io.curves()
    assert.equal(#text, whole:feed(text))
    for _, size in ipairs { 1, 7, 100, 4096 } do
      local curves, kept = c.io.curves(), ""
      for i = 1, #text, size do
        kept = kept .. text:sub(i, i + size - 1)
        kept = kept:sub(curves:feed(kept) + 1)
      end
      assert.is_true(curves:extends(whole) and whole:extends(curves))
    end
    local _, why = c.io.curves():feed "step,epoch\n"
    assert.matches("must begin with epoch,step", why)
  end)
end)
