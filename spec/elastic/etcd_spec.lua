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
    local function refusal(text)
      local value <const>, message = assert(stores.open(text)):get "k"
      assert.is_nil(value)
      return message
    end
    assert.matches("certificate", refusal((url:gsub("/ca%.pem", "/other.pem"))))
    assert.is_string(refusal((url:gsub("&cert.*", ""))))
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
    assert.matches("user name is empty", message)
    cluster.query = "?user=root&password=se%3Acret"
    local store <const> = cluster:open()
    assert.is_truthy(store:put("k", "v"))
    store._token = "of another time"
    assert.equal("v", (store:get "k"))
    cluster.query = "?user=root&password=wrong"
    value, message = assert(stores.open(cluster:url())):get "k"
    assert.is_nil(value)
    assert.matches("authentication failed", message)
    store:close()
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
