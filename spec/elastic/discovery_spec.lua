-- spec/elastic/discovery_spec.lua: `ltrain launch --host_discovery_script`: a script says which
-- hosts take part, and how many ranks each has.
-- tags: slow, waits
local c = require "ltrain.c"
local child = require "spec.cli.child"
local HostDiscovery = require "ltrain.elastic.HostDiscovery"
local launchers = require "spec.elastic.launchers"

local missing = launchers.missing()

-- The ranks that a script gives a host, and what was complained about.
local function answer(script, names, n)
  local folder <const>, said = child.folder(), {}
  child.write(folder .. "/hosts.sh", "#!/bin/sh\n" .. script .. "\n")
  os.execute(("chmod +x '%s/hosts.sh'"):format(folder))
  local discovery <const> = HostDiscovery { script = folder .. "/hosts.sh",
    output = folder .. "/out", names = names or { "node1" }, slots = 3, most = 64,
    say = function(line) said[#said + 1] = line:sub(#folder + 2) end }
  local ranks
  for _ = 1, n or 1 do
    discovery.due = 0
    repeat
      ranks = discovery:ranks()
      c.runtime.sleep(0.01)
    until not discovery.pid
  end
  child.remove(folder)
  return ranks, table.concat(said, "\n")
end

describe("the list of a host discovery script", function()
  it("gives a host the ranks behind its name, or those of --nproc_per_node", function()
    assert.equal(4, (answer "echo other:2; echo node1:4"))
    assert.equal(3, (answer "echo; echo '# all'; echo node1"))
    assert.equal(0, (answer "echo node10:4; echo other"))
    assert.equal(0, (answer "true"))
  end)

  it("knows a host by its address, and with or without its domain", function()
    assert.equal(2, (answer("echo 10.0.0.1:2", { "node1", "10.0.0.1" })))
    assert.equal(2, (answer("echo '[fd00::1]:2'", { "fd00::1" })))
    assert.equal(2, (answer("echo node1.a.example:2", { "node1" })))
    assert.equal(2, (answer("echo node1:2", { "node1.a.example" })))
    assert.equal(0, (answer("echo node1.b.example:2", { "node1.a.example" })))
    assert.equal(0, (answer("echo 10.0.0.2:2", { "10.0.0.1" })))
  end)

  it("is the last one where the script fails, which is said once", function()
    local script <const> = "echo node1:2; test ! -e $0.ran; r=$?; touch $0.ran; exit $r"
    local ranks <const>, said = answer(script, nil, 3)
    assert.equal(2, ranks)
    assert.equal("hosts.sh: ended with status 1", said)
  end)

  it("must have a host in each line", function()
    local ranks, said = answer "echo node1:two"
    assert.is_nil(ranks)
    assert.equal("hosts.sh: must print HOST:RANKS in each line: node1:two", said)
    ranks, said = answer "echo node1:65"
    assert.is_nil(ranks)
    assert.equal("hosts.sh: 65 ranks: at most 64", said)
  end)
end)

describe("ltrain launch --host_discovery_script", function()
  it("lets hosts in and out, and changes their ranks, at the end of a batch", function()
    if missing then return pending(missing) end
    local one <close> = launchers.new [[
      function step(_, trainer)
        nap(0.04)
        trainer.should_stop = exists "end"
      end
      train {max_epochs = 10000}
    ]]
    child.write(one.folder .. "/hosts.sh", "#!/bin/sh\ncat list\n")
    os.execute(("chmod +x '%s/hosts.sh'"):format(one.folder))
    local function list(text)
      child.write(one.folder .. "/list.new", text)
      os.rename(one.folder .. "/list.new", one.folder .. "/list")
    end
    list "a:1\n"
    for _, name in ipairs { "a", "b" } do
      one:start(name, ("--nnodes 1:2 --host_id %s --last_call 1 --rdzv file://%s/store "
        .. "--host_discovery_script hosts.sh"):format(name, one.folder))
    end
    assert.is_true(one:wait_text("a", "out", "start 0 of 1 ranks"), one:all())
    assert.is_true(one:wait_text("b", "err", "waits until the list of hosts has this one"),
      one:all())
    list "a:1\nb:1\n"
    assert.is_true(one:wait_text("a", "out", "start 1 of 2 ranks"), one:all())
    list "a:1\nb:2\n"
    assert.is_true(one:wait_text("a", "out", " of 3 ranks"), one:all())
    assert.matches("host b leaves: the list of hosts gives it 2 ranks", one:read("b", "err"), 1,
      true)
    list "b:2\n"
    assert.is_true(one:wait_text("b", "out", " of 2 ranks"), one:all())
    assert.matches("host a leaves: it is no longer in the list of hosts", one:read("a", "err"), 1,
      true)
    assert.not_matches("restart", one:all(), 1, true)
    os.execute(("touch '%s/end'"):format(one.folder))
    for _, name in ipairs { "a", "b" } do assert.equal(0, one:status(name), one:all()) end
    assert.is_truthy(one:wait_gone(10), one:all())
  end)
end)
