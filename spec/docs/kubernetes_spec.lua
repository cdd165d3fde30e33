-- spec/docs/kubernetes_spec.lua: the manifests of examples/kubernetes have fields that their APIs
-- have, and start commands that ltrain understands; the image has the packages that are built.
local child = require "spec.cli.child"
local yaml = require "ltrain.files.yaml"

local ROOT <const> = os.getenv "LT_ROOT" or "."

local function text_of(path)
  local file <close> = assert(io.open(ROOT .. "/" .. path))
  return file:read "a"
end

-- Types of the APIs, of their fields those that the manifests use or that are likely: a name of a
-- type in this table, "text", "number", "any", {type} of a list, {["*"] = type} of any names.
-- Sources: JobSet v1alpha2, Kubeflow's training operator v1 and MPI operator v2beta1, Kubernetes
-- batch/v1 and core/v1.
local TYPES <const> = {
  JobSet = { apiVersion = "text", kind = "text", metadata = "Metadata", spec = "JobSetSpec" },
  JobSetSpec = { replicatedJobs = { "ReplicatedJob" }, network = "Network",
    failurePolicy = { maxRestarts = "number", rules = "any" }, successPolicy = "any",
    suspend = "any", ttlSecondsAfterFinished = "number" },
  Network = { enableDNSHostnames = "any", subdomain = "text", publishNotReadyAddresses = "any" },
  ReplicatedJob = { name = "text", replicas = "number",
    template = { metadata = "Metadata", spec = "JobSpec" } },
  JobSpec = { completionMode = "text", completions = "number", parallelism = "number",
    backoffLimit = "number", backoffLimitPerIndex = "number", maxFailedIndexes = "number",
    podFailurePolicy = { rules = { "PodFailureRule" } }, activeDeadlineSeconds = "number",
    ttlSecondsAfterFinished = "number", template = "PodTemplate" },
  PodFailureRule = { action = "text", onPodConditions = { { type = "text", status = "text" } },
    onExitCodes = { containerName = "text", operator = "text", values = { "number" } } },
  PyTorchJob = { apiVersion = "text", kind = "text", metadata = "Metadata", spec = {
    elasticPolicy = { rdzvBackend = "text", rdzvPort = "number", rdzvHost = "text",
      rdzvId = "text", minReplicas = "number", maxReplicas = "number", nProcPerNode = "number",
      maxRestarts = "number", standalone = "any" },
    nprocPerNode = "text", runPolicy = "RunPolicy",
    pytorchReplicaSpecs = { Master = "ReplicaSpec", Worker = "ReplicaSpec" } } },
  MPIJob = { apiVersion = "text", kind = "text", metadata = "Metadata", spec = {
    slotsPerWorker = "number", sshAuthMountPath = "text", runPolicy = "RunPolicy",
    mpiImplementation = "text", launcherCreationPolicy = "text",
    mpiReplicaSpecs = { Launcher = "ReplicaSpec", Worker = "ReplicaSpec" } } },
  RunPolicy = { cleanPodPolicy = "text", ttlSecondsAfterFinished = "number",
    activeDeadlineSeconds = "number", backoffLimit = "number", suspend = "any" },
  ReplicaSpec = { replicas = "number", restartPolicy = "text", template = "PodTemplate" },
  Metadata = { name = "text", namespace = "text", labels = { ["*"] = "text" },
    annotations = { ["*"] = "text" } },
  PodTemplate = { metadata = "Metadata", spec = { restartPolicy = "text",
    terminationGracePeriodSeconds = "number", containers = { "Container" }, volumes = { "Volume" },
    nodeSelector = { ["*"] = "text" }, tolerations = "any" } },
  Container = { name = "text", image = "text", command = { "text" }, args = { "text" },
    env = { { name = "text", value = "text", valueFrom = "any" } },
    ports = { { containerPort = "number", name = "text" } }, livenessProbe = "Probe",
    readinessProbe = "Probe", startupProbe = "Probe", workingDir = "text",
    resources = { requests = { ["*"] = "text" }, limits = { ["*"] = "text" } },
    volumeMounts = { { name = "text", mountPath = "text", readOnly = "any" } } },
  Probe = { exec = { command = { "text" } }, tcpSocket = { port = "number" },
    httpGet = "any", periodSeconds = "number", timeoutSeconds = "number",
    failureThreshold = "number", initialDelaySeconds = "number" },
  Volume = { name = "text", persistentVolumeClaim = { claimName = "text" },
    emptyDir = { medium = "text", sizeLimit = "text" }, configMap = "any" },
}

-- What is wrong with a value of a manifest, or nil.
local function fault(value, kind, path)
  if type(kind) == "string" and TYPES[kind] then kind = TYPES[kind] end
  if kind == "any" then return nil end
  if kind == "text" then return type(value) ~= "string" and path .. " must be a text" or nil end
  if kind == "number" then
    return not math.tointeger(value) and path .. " must be a whole number" or nil
  end
  if type(value) ~= "table" then return path .. " must be a table" end
  for key, item in pairs(value) do
    local of = kind[1] or kind[key] or kind["*"]
    if not of or (kind[1] ~= nil) ~= (type(key) == "number") then
      return ("%s has no %s"):format(path, key)
    end
    local wrong = fault(item, of, ("%s.%s"):format(path, key))
    if wrong then return wrong end
  end
end

-- The manifest, and its pod templates.
local function read(name)
  local manifest = assert(yaml.decode(text_of("examples/kubernetes/" .. name .. ".yaml")))
  local pods = {}
  local function walk(value)
    if type(value) ~= "table" then return end
    if value.containers then pods[#pods + 1] = value end
    for _, item in pairs(value) do walk(item) end
  end
  walk(manifest)
  return manifest, pods
end

-- The options of `ltrain launch` in a list of words, where it has the names of variables.
local function launch_words(words)
  local text = table.concat(words, " "):match "ltrain launch (.*)"
  local list = {}
  local values <const> = { PET_NNODES = "1:1", PET_NPROC_PER_NODE = "1", PET_MAX_RESTARTS = "3",
    PET_RDZV_ENDPOINT = "127.0.0.1:29999", PET_RDZV_ID = "id" }
  for word in text:gmatch "%S+" do
    list[#list + 1] = word:gsub('"', ""):gsub("%$([%w_]+)", values)
  end
  return list
end

describe("the manifest of a", function()
  for kind, name in pairs { JobSet = "jobset", PyTorchJob = "pytorchjob", MPIJob = "mpijob" } do
    it(kind .. " has the fields of its API, a grace, and probes", function()
      local manifest, pods = read(name)
      assert.equal(kind, manifest.kind)
      assert.is_nil(fault(manifest, kind, kind))
      local probes = 0
      for _, pod in ipairs(pods) do
        assert.is_true(pod.terminationGracePeriodSeconds >= 60)
        for _, container in ipairs(pod.containers) do
          if container.livenessProbe or container.readinessProbe then probes = probes + 1 end
        end
      end
      assert.equal(1, probes)
    end)
  end

  for _, name in ipairs { "jobset", "pytorchjob" } do
    it(name .. " starts `ltrain launch` with its options, within the grace of the pod", function()
      local _, pods = read(name)
      local container = pods[1].containers[1]
      local words = { table.unpack(container.command) }
      table.move(container.args, 1, #container.args, #words + 1, words)
      local options = launch_words(words)
      local grace = tonumber(table.concat(options, " "):match "%-%-grace[ =](%d+)")
      assert.is_true(grace < pods[1].terminationGracePeriodSeconds)
      assert.equal("model.lua", options[#options])
      options[#options] = "missing.lua"
      table.insert(options, 1, "launch")
      local status, _, err = child.run(options)
      assert.equal(2, status)
      assert.matches("cannot open missing.lua", err, 1, true) -- found after the options are read
    end)
  end
end)

describe("the image of the manifests", function()
  it("installs the packages that `cpack -G DEB` makes", function()
    local names = {}
    for name in text_of "cmake/LtInstall.cmake":gmatch "PACKAGE_NAME ([%w-]+)%)" do
      names[name] = true
    end
    for name in text_of "examples/kubernetes/Containerfile":match "\nCOPY ([^\n]*)"
      :gmatch "([%w-]+)_%*" do
      assert.is_true(names[name], name)
      names[name] = nil
    end
    assert.is_nil(next(names))
  end)
end)

describe("the SLURM script", function()
  it("starts one `ltrain launch` a node, with options that it has", function()
    local text = text_of "examples/slurm/elastic.sbatch"
    assert.matches("#SBATCH --ntasks-per-node=1\n", text, 1, true)
    assert.matches("srun --no-kill", text, 1, true)
    local options = launch_words { (text:gsub("\\\n", " "):gsub("%$PWD", "/tmp")) }
    for i, word in ipairs(options) do
      if word == "model.lua" then options[i] = "missing.lua" end
    end
    table.insert(options, 1, "launch")
    local status, _, err = child.run(options)
    assert.equal(2, status)
    assert.matches("cannot open missing.lua", err, 1, true)
  end)
end)
