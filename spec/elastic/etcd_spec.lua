-- spec/elastic/etcd_spec.lua: servers of etcd that ask who somebody is, and servers that fail.
-- tags: slow
local c = require "ltrain.c"
local child = require "spec.cli.child"
local etcd = require "spec.elastic.etcd"
local launchers = require "spec.elastic.launchers"
local stores = require "ltrain.elastic.stores"

local missing <const> = etcd.missing()
  or not c.runtime.process.find "openssl" and "openssl is not installed" or nil

-- An authority, a certificate of 127.0.0.1 that it has signed, and another authority.
local CERTIFICATES <const> = [[
new() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "$@"; }
new -subj /CN=authority -keyout ca.key -out ca.pem
new -subj /CN=other -keyout other.key -out other.pem
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=server \
  -keyout key.pem -out request.pem
echo "subjectAltName=IP:127.0.0.1" >extensions
openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
  -extfile extensions -out cert.pem
]]

describe("etcd over TLS", function()
  local cluster, folder
  setup(function()
    if missing then return end
    folder = child.folder()
    local code <const>, _, err = child.shell(CERTIFICATES, { dir = folder })
    assert.equal(0, code, err)
    local function file(name) return ("%s/%s.pem"):format(folder, name) end
    cluster = etcd.start(1, { scheme = "https", folder = folder,
      flags = ("--cert-file %s --key-file %s --client-cert-auth --trusted-ca-file %s"):format(
        file "cert", file "key", file "ca"),
      query = ("?ca=%s&cert=%s&key=%s"):format(file "ca", file "cert", file "key") })
  end)
  teardown(function()
    if cluster then cluster:stop() end
  end)

  it("knows the server and is known to it", function()
    if missing then return pending(missing) end
    local store <const> = cluster:open()
    assert.is_truthy(store:put("k", "v"))
    assert.equal("v", (store:get "k"))
    assert.is_true(store:wait("k", 0))
    assert.is_truthy(store:put("k", "w"))
    assert.is_true(store:wait("k", 10)) -- watches have the certificates, too
    store:close()
  end)

  it("is where launchers meet, and meet again when a rank is killed", function()
    local reason <const> = missing or launchers.missing()
    if reason then return pending(reason) end
    cluster:open():close()
    local one <close> = launchers.new [[
      function step(k)
        if k == 7 and world.incarnation == 0 and lt.dist.rank() == 1 then kill() end
      end
      train()
    ]]
    for _, name in ipairs { "a", "b" } do
      one:start(name, ("--nnodes 2 --host_id %s --rdzv \"%s\""):format(name, cluster:url()))
    end
    for _, name in ipairs { "a", "b" } do
      assert.equal(0, one:status(name), one:all())
      assert.matches("the job has ended well after 1 restart; first failure: rank 1 on host %a "
        .. "failed: was ended by SIGKILL\n$", one:read(name, "err"))
    end
    assert.equal(1, one:count "start 0 of 2 ranks: from step 0: \n", one:all())
    assert.equal(1, one:count "start 1 of 2 ranks: from step ", one:all())
    assert.equal(1, one:count "to step 12\n", one:all())
    assert.is_truthy(one:wait_gone(10), one:all())
  end)

  it("does not speak to a server of another authority, nor without a certificate", function()
    if missing then return pending(missing) end
    cluster:open():close()
    local url <const> = cluster:url()
    local at <const> = ("etcd at 127.0.0.1:%d "):format(cluster.servers[1].port)
    local function refusal(text, wanted)
      local store <const> = assert(stores.open(text))
      assert.equal(at .. wanted, store:refusal "k")
      local value <const>, message = store:get "k"
      assert.is_nil(value)
      assert.equal(at .. wanted, message)
    end
    assert.is_nil(assert(stores.open(url)):refusal "k")
    refusal((url:gsub("/ca%.pem", "/other.pem")), ("has a certificate of an authority that is not "
      .. "in ca=%s/other.pem"):format(folder))
    refusal((url:gsub("/ca%.pem", "/none.pem")), ("cannot be checked: there are no certificates "
      .. "in ca=%s/none.pem"):format(folder))
    refusal((url:gsub("&cert.*", "")), "wants a certificate of this host: cert=FILE&key=FILE")
    refusal((url:gsub("^etcds", "etcd"):gsub("%?.*", "")), "ends connections without an answer: "
      .. "does it use TLS (etcds:// in place of etcd://)?")
  end)
end)

describe("etcd with users", function()
  it("takes a user and a password, and gets a new token when the old one is gone", function()
    if missing then return pending(missing) end
    local cluster <const> = etcd.start(1)
    local open <const> = cluster:open()
    for path, body in pairs { ["user/add"] = { name = "root", password = "se:cret" },
                              ["role/add"] = { name = "root" } } do
      open:_call("/v3/auth/" .. path, body)
    end
    assert(open:_call("/v3/auth/user/grant", { user = "root", role = "root" }))
    assert(open:_call("/v3/auth/enable", {}))
    local value, message = open:put("k", "v")
    assert.is_nil(value)
    local at <const> = ("etcd at 127.0.0.1:%d "):format(cluster.servers[1].port)
    assert.equal(at .. "wants a user: user=NAME&password=... in --rdzv, or "
      .. "ETCDCTL_USER=NAME:PASSWORD", message)
    cluster.query = "?user=root&password=se%3Acret"
    local store <const> = cluster:open()
    assert.is_truthy(store:put("k", "v"))
    store._token = "of another time"
    assert.equal("v", (store:get "k"))
    cluster.query = "?user=root&password=wrong"
    assert.equal(at .. "does not know the user root with this password",
      assert(stores.open(cluster:url())):refusal "k")
    store:close()
    cluster:stop()
  end)
end)

-- A server of another protocol.
local ANOTHER <const> = [[
  local server = require "ltrain.c".net.serve("127.0.0.1", %d, 1024, 1024)
  while true do
    local client, line = server:wait(1)
    if line then server:send(client, "SSH-2.0-OpenSSH_9.2") end
  end
]]

describe("a server that is not etcd", function()
  it("is told from one that does not answer yet, in one sentence", function()
    if missing then return pending(missing) end
    local port <const> = etcd.free_port()
    local url <const> = ("etcd://127.0.0.1:%d,127.0.0.1:%d"):format(port, port)
    local store <const> = assert(stores.open(url))
    assert.is_nil(store:refusal "k")
    local _, message = store:get "k"
    assert.equal(("etcd at 127.0.0.1:%d and 127.0.0.1:%d does not answer: does it "
      .. "run there, and is this its port?"):format(port, port), message)
    local pid <const> = assert(c.runtime.process.start { os.getenv "LTRAIN", "-e",
      ANOTHER:format(port) })
    local other <const>, deadline = assert(stores.open("etcd://127.0.0.1:" .. port)),
      c.runtime.clock() + 30
    local refusal
    repeat refusal = other:refusal "k" until refusal or c.runtime.clock() > deadline
    c.runtime.process.signal(pid, "KILL")
    c.runtime.process.wait_any({ pid }, 10)
    assert.equal(("etcd at 127.0.0.1:%d is not what answers there: is this its port?"):format(port),
      refusal)
  end)

  it("is told that it does not use TLS", function()
    if missing then return pending(missing) end
    local cluster <const> = etcd.start(1)
    cluster:open():close()
    assert.equal(("etcd at 127.0.0.1:%d does not use TLS: write etcd:// in place of etcds://, "
      .. "without ca and cert"):format(cluster.servers[1].port),
      assert(stores.open((cluster:url():gsub("^etcd", "etcds")))):refusal "k")
    cluster:stop()
  end)
end)

describe("several servers of etcd", function()
  it("are asked one after the other", function()
    if missing then return pending(missing) end
    local cluster <const> = etcd.start(1)
    local nobody <const> = ("127.0.0.1:%d"):format(etcd.free_port())
    local store <const> = assert(stores.open((cluster:url():gsub("//", "//" .. nobody .. ","))))
    cluster:open():close()
    assert.is_truthy(store:put("k", "v"))
    assert.is_true(store:wait("k", 0))
    assert.is_false(store:wait("k", 0))
    cluster:kill(1)
    local gone <const>, message = store:get "k"
    assert.is_nil(gone)
    for _, port in ipairs { nobody:match "%d+$", cluster.servers[1].port } do
      assert.matches("127%.0%.0%.1:" .. port, message) -- each with its reason
    end
    assert.is_true(store:wait("k", 5)) -- the watch has ended
    cluster:start(1)
    cluster:open():close()
    assert.equal("v", (store:get "k"))
    cluster:stop()
  end)
end)
