-- spec/elastic/stores_spec.lua: what the rendezvous rests on holds for every store.
-- tags: slow
local c = require "ltrain.c"
local child = require "spec.cli.child"
local etcd = require "spec.elastic.etcd"
local FileStore = require "ltrain.elastic.stores.file"
local MemoryStore = require "ltrain.elastic.stores.memory"
local stores = require "ltrain.elastic.stores"

local SECONDS <const> = 60 -- for what takes seconds at most

-- By name: why there is none here (optional), and two clients with what ends them.
local kinds <const> = {
  { name = "memory", open = function()
    local store <const> = MemoryStore()
    return store, store:share(), function() end
  end },
  { name = "file", open = function()
    local folder <const> = child.folder()
    return assert(stores.open("file://" .. folder)), FileStore(folder),
      function() child.remove(folder) end
  end },
  { name = "tcp", open = function()
    local url <const> = ("tcp://127.0.0.1:%d/job"):format(etcd.free_port())
    local first <const>, second = assert(stores.open(url)), assert(stores.open(url))
    return first, second, function()
      second:close()
      first:close()
    end
  end },
  { name = "etcd", missing = etcd.missing(), open = function()
    local cluster <const> = etcd.start(1)
    local first <const>, second = cluster:open(), cluster:open()
    return first, second, function()
      first:close()
      second:close()
      cluster:stop()
    end
  end },
}

local cases <const> = {}

cases["gives what was put, and false of a key that does not exist"] = function(a, b)
  assert.is_false((a:get "one/x"))
  local version <const> = assert(a:put("one/x", "1"))
  assert.same({ "1", version }, { b:get "one/x" })
  local next_version <const> = assert(b:put("one/x", "2"))
  assert.is_true(next_version > version)
  assert.same({ "2", next_version }, { a:get "one/x" })
end

cases["keeps each byte of keys and values"] = function(a, b)
  local text <const> = 'a "quoted" \\ line\nand another, \u{e9}\u{4e2d} ' .. ("x"):rep(200000)
  assert(a:put("two/a b%@.c", text))
  assert(a:put("two/empty", ""))
  assert.equal(text, (b:get "two/a b%@.c"))
  assert.equal("", (b:get "two/empty"))
end

cases["creates a key once"] = function(a, b)
  local version <const> = assert(a:create("three/x", "a"))
  assert.is_false(b:create("three/x", "b"))
  assert.same({ "a", version }, { b:get "three/x" })
  assert(a:remove "three/x")
  assert.is_truthy(b:create("three/x", "b"))
  assert.equal("b", (a:get "three/x"))
end

cases["replaces the version that is named, and no other"] = function(a, b)
  assert.is_false(a:replace("four/x", "1", 7))
  local first <const> = assert(a:create("four/x", "1"))
  local second <const> = assert(b:replace("four/x", "2", first))
  assert.is_false(a:replace("four/x", "3", first))
  assert.same({ "2", second }, { a:get "four/x" })
  for k = 1, 30 do -- versions that a store may have forgotten
    assert(a:replace("four/x", tostring(k), select(2, a:get "four/x")))
  end
  assert.is_false(b:replace("four/x", "4", first))
  assert.is_false(b:replace("four/x", "4", second))
  assert.equal("30", (b:get "four/x"))
end

cases["lists the keys below a prefix"] = function(a, b)
  for _, key in ipairs { "five/a/1", "five/a/2", "five/b", "five/ab" } do
    assert(a:put(key, key))
  end
  local found <const> = assert(b:list "five/a/")
  assert.equal("five/a/1", found["five/a/1"].value)
  assert.equal(select(2, a:get "five/a/2"), found["five/a/2"].version)
  found["five/a/1"], found["five/a/2"] = nil, nil
  assert.same({}, found)
  assert.same({}, b:list "five/c")
end

cases["removes a key, also one that does not exist"] = function(a, b)
  assert(a:put("six/x", "1"))
  assert.is_true(b:remove "six/x")
  assert.is_false((a:get "six/x"))
  assert.is_true(a:remove "six/x")
end

cases["removes the keys of a lease that is dropped"] = function(a, b)
  local lease <const>, other = assert(a:lease(30)), assert(b:lease(30))
  assert(a:create("seven/x", "1", lease))
  assert(a:create("seven/y", "1", lease))
  assert(b:put("seven/y", "2", other)) -- it belongs to this one now
  assert.is_true(a:keep(lease))
  assert.is_true(a:drop(lease))
  assert.is_false((b:get "seven/x"))
  assert.equal("2", (a:get "seven/y"))
  assert.is_false(a:keep(lease))
  assert.is_false(a:put("seven/x", "3", lease))
  assert.is_false(a:create("seven/x", "3", lease))
  assert.is_false((b:get "seven/x"))
end

cases["removes the keys of a lease that nobody keeps #slow"] = function(a, b)
  local lost <const>, kept = assert(a:lease(1)), assert(b:lease(1))
  assert(a:create("eight/x", "1", lost))
  assert(b:create("eight/y", "1", kept))
  local deadline <const> = c.runtime.clock() + SECONDS
  while b:get "eight/x" do
    assert.is_true(b:keep(kept))
    assert(c.runtime.clock() < deadline)
    c.runtime.sleep(0.1)
  end
  assert.is_false(a:keep(lost))
  assert.equal("1", (a:get "eight/y"))
  assert.is_truthy(b:create("eight/x", "2", kept))
end

cases["waits for a change below a prefix"] = function(a, b)
  assert.is_true(a:wait("nine/a/", 0)) -- what came before is not known
  a:wait("nine/a/", 0)
  assert.is_false(a:wait("nine/a/", 0))
  assert(b:put("nine/b", "1"))
  assert.is_false(a:wait("nine/a/", 0.05))
  local lease <const> = assert(b:lease(30))
  assert(b:put("nine/a/x", "1", lease))
  assert.is_true(a:wait("nine/a/", SECONDS))
  assert.equal("1", (a:get "nine/a/x"))
  assert(b:drop(lease))
  assert.is_true(a:wait("nine/a/", SECONDS))
  assert.is_false((a:get "nine/a/x"))
end

cases["lets one of many win, whoever asks first"] = function(a, b)
  assert(a:put("ten/x", "0"))
  for k = 1, 20 do
    local _, version = a:get "ten/x"
    local one, two = k % 2 == 0 and a or b, k % 2 == 0 and b or a
    assert.is_truthy(one:replace("ten/x", tostring(k), version))
    assert.is_false(two:replace("ten/x", "lost", version))
  end
  assert.equal("20", (b:get "ten/x"))
end

local names <const> = {}
for name in pairs(cases) do names[#names + 1] = name end
table.sort(names)

for _, kind in ipairs(kinds) do
  describe("the " .. kind.name .. " store", function()
    local a, b, stop
    setup(function()
      if not kind.missing then a, b, stop = kind.open() end
    end)
    teardown(function() if stop then stop() end end)
    for _, name in ipairs(names) do
      it(name, function()
        if kind.missing then return pending(kind.missing) end
        cases[name](a, b)
      end)
    end
  end)
end

describe("the file store", function()
  local folder
  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  -- How many folders are listed while fn() runs.
  local function listed(fn)
    local list <const>, count = c.io.list_folder, 0
    c.io.list_folder = function(path)
      count = count + 1
      return list(path)
    end
    local ok <const>, message = pcall(fn)
    c.io.list_folder = list
    assert(ok, message)
    return count
  end

  it("lists a folder only where it does not know of a key in it", function()
    local a <const>, b = FileStore(folder), FileStore(folder)
    local lease <const> = assert(a:lease(30))
    for k = 1, 20 do assert(a:put("j/hosts/" .. k, "1", lease)) end
    assert(a:put("j/round/state", "1"))
    assert.equal("1", (b:get "j/hosts/3"))
    assert.equal(0, listed(function()
      for k = 2, 30 do
        local text <const> = tostring(k)
        assert(a:put("j/hosts/3", text, lease))
        assert.is_true(a:keep(lease))
        if k % 3 == 0 then assert.equal(text, (b:get "j/hosts/3")) end
      end
    end))
    assert.equal(2, listed(function() -- of all, and that of round/
      assert.equal("1", b:list "j/round/"["j/round/state"].value)
    end))
  end)

  it("keeps a few versions, and finds the last one after any number of them", function()
    local a <const>, b = FileStore(folder), FileStore(folder)
    assert(a:put("x", "1"))
    assert.equal("1", (b:get "x"))
    for k = 2, 30 do assert(a:put("x", tostring(k))) end
    assert.equal("30", (b:get "x"))
    assert.equal(8, #c.io.list_folder(folder))
  end)

  it("removes a version that was made when others had gone on", function()
    local a <const> = FileStore(folder)
    for k = 1, 30 do assert(a:put("x", tostring(k))) end
    assert.is_false(FileStore(folder):_make("x", 3, { value = "late" }))
    assert.equal(8, #c.io.list_folder(folder))
    assert.equal("30", (a:get "x"))
  end)
end)

describe("a URL of a store", function()
  local function wrong(url) return select(2, stores.open(url)) end

  it("names what is wrong with it", function()
    assert.matches("a store is written as tcp://HOST:PORT", wrong "h1:2379")
    assert.matches("unknown store 'etdc'; did you mean 'etcd'?", wrong "etdc://h1/j", 1, true)
    assert.matches("no server: etcd://HOST:PORT", wrong "etcd:///job")
    assert.matches("'h1:x' is not HOST:PORT", wrong "etcd://h1:x/job")
    assert.matches("unknown parameter cert_file: ca, cert, key", wrong "etcds://h/j?cert_file=x")
    assert.matches("file:///shared/folder", wrong "file://shared/folder")
    assert.matches("one server: tcp://HOST:PORT", wrong "tcp://a:1,b:2")
  end)

  it("names the servers, also where their addresses are numbers", function()
    assert.same({ "h1", "::1", "h3" }, stores.hosts "etcds://me:pass@h1:2379,[::1]:9,h3/job?ca=x")
    assert.same({}, stores.hosts "file:///a/b")
    local none <const>, message = stores.hosts "tcp:host"
    assert.is_nil(none)
    assert.matches("^tcp:host: a store is written as ", message)
  end)

  it("has the name of the job", function()
    local folder <const> = child.folder()
    assert.equal("my job", stores.open("etcd://127.0.0.1:1/my%20job").job)
    assert.is_nil(stores.open("file://" .. folder).job)
    child.remove(folder)
  end)
end)

describe("a store that cannot be reached", function()
  it("says so in each method, and raises nothing", function()
    local folder <const> = child.folder()
    local gone <const> = FileStore(folder)
    child.remove(folder)
    local nobody <const> = ("127.0.0.1:%d"):format(etcd.free_port())
    for _, store in ipairs { stores.open("etcd://" .. nobody .. "/job"), gone,
                             require "ltrain.elastic.stores.tcp"("127.0.0.1", 1) } do
      for _, call in ipairs { { "get", "k" }, { "list", "k" }, { "put", "k", "v" },
                              { "create", "k", "v" }, { "replace", "k", "v", 1 }, { "lease", 5 },
                              { "remove", "k" }, { "keep", "1" } } do
        local value <const>, message = store[call[1]](store, table.unpack(call, 2))
        assert.is_nil(value)
        assert.equal("string", type(message), call[1])
      end
      assert.is_boolean(store:wait("k", 0.01))
      store:close()
    end
  end)
end)
