-- spec/devices.lua: which specs run again on other devices than the CPU, and what of them does not.
--
-- tools/run_specs.lua runs each file below these folders once more for the fake device, for cuda
-- where the build has it emulated, and for each device that LT_TEST_DEVICES names ("cuda,pigeon");
-- spec/on_device.lua puts its tensors there.

local EMULATED <const> = "thousands of small calls: spec/cuda/recurrent_spec.lua"
local RANKS <const> = "its scripts go on with other numbers of ranks, which need a device that "
  .. "survives forks; ranks train in spec/dist/devices_spec.lua and spec/cuda/nccl_*_spec.lua"
local MESHES <const> = "seconds of many ranks; the other cases have what a device does in them"
local ONE <const> = "has more ranks than this run has GPUs"

return {
  folders = {
    "spec/autograd/", "spec/metrics/", "spec/nn/", "spec/ops/", "spec/optim/",
    "spec/profiler/", "spec/trainer/",
    -- Of ranks those that train; what starts, joins and ends them, and cuts their data, knows of
    -- no device.
    "spec/dist/ddp_spec.lua", "spec/dist/devices_spec.lua", "spec/dist/elastic_spec.lua",
    "spec/dist/fit_spec.lua", "spec/dist/gradients_spec.lua",
    "spec/dist/metrics_spec.lua", "spec/dist/nonfinite_spec.lua", "spec/dist/predict_spec.lua",
    "spec/dist/resume_spec.lua", "spec/dist/verification_spec.lua", "spec/parallel/",
    "spec/strategies/",
  },

  -- Specs in the folder spec/cuda name this device themselves, and run where it is.
  alone = "cuda",

  -- Every nth case of a file runs there, others on each device and for another LT_TEST_SEED; all
  -- with --exhaustive, and on a device that LT_TEST_DEVICES names.
  -- A spec in the folder spec/cuda is not sampled so: nothing else runs its cases.
  sampled = { fake = 3, cuda = 3 },

  -- Cases whose names have these in them: bytes of a device go to these transports as to shm, from
  -- the host's memory.
  transports = { "over mpi", "over two hosts" },

  -- Files, or cases of a file by their full names, each with the reason.
  skipped = {
    ["spec/autograd/backward_spec.lua"] = {
      ["backward walks and frees far more chained nodes than a stack holds"] =
        "each a task in a queue: 5 s",
    },
    ["spec/metrics/f1_spec.lua"] = {
      ["F1 reports both shapes when they do not fit, and an id that is none"] =
        "a device refuses values when it is waited for: spec/c/order_test.c",
    },
    ["spec/ops/images_spec.lua"] = {
      ["embedding_bag refuses offsets that are none"] =
        "offsets of a device are not waited for: what is wrong there is an index of no bag",
    },
    ["spec/nn/layers_spec.lua"] = {
      ["nn.CrossEntropyLoss names the ids that are allowed"] =
        "a device refuses values when it is waited for: spec/c/order_test.c",
    },
    ["spec/nn/recurrent_spec.lua"] = {
      ["nn.LSTM has the derivatives that finite differences have, first and second"] = EMULATED,
      ["nn.GRU has the derivatives that finite differences have, first and second"] = EMULATED,
      ["nn.RNN has the derivatives that finite differences have, first and second"] = EMULATED,
      ["nn.LSTM with a projection has second derivatives"] = EMULATED,
    },
    ["spec/nn/module_spec.lua"] = {
      ["Module:to leaves alone what is there already"] = "is about the cpu by name",
      ["properties report device and dtype of the parameters"] = "is about the cpu by name",
    },
    ["spec/ops/product_pieces_spec.lua"] = "is about the cpu's way",
    ["spec/parallel/pipeline_spec.lua"] = "minutes; spec/parallel/pipeline_files_spec.lua has it",
    ["spec/parallel/sharded_mesh_spec.lua"] = {
      ["stage 3 of a mesh trains on 2 x 2 x 2 ranks as one does"] = MESHES,
      ["checkpoints of stages 2 and 3 of a mesh resume on other meshes and on one rank, whole and "
        .. "sharded, in mid-window"] = MESHES,
      ["checkpoints of stages 2 and 3 of a mesh have parts of fewer elements than there are ranks"]
        = MESHES,
      ["a rank that is killed on a mesh in a gather of stage 3 ends the others, and is named"]
        = MESHES,
      ["a rank that is killed on a mesh in a reduction of stage 3 ends the others, and is named"]
        = MESHES,
    },
    ["spec/parallel/tensor_ranks_spec.lua"] = {
      ["tensor parallel ranks end with the rank that fails, and leave a module that says so"] =
        "calls the module with what is on the first device",
    },
    ["spec/strategies/parts_spec.lua"] = {
      ["an accelerator is set up before the module is placed, and torn down after the run"] =
        "is about the cpu by name",
    },
    ["spec/strategies/dp_spec.lua"] = "its devices are fake ones, by name",
    ["spec/strategies/local_sgd_spec.lua"] = "20 s; it averages weights by all_reduce",
    ["spec/strategies/diloco_spec.lua"] = "30 s; it averages weights by all_reduce",
    ["spec/strategies/sharded_spec.lua"] = "20 s; spec/dist/devices_spec.lua has it on fake",
    ["spec/strategies/sharded_stages_spec.lua"] = "20 s; spec/dist/devices_spec.lua has it on fake",
    ["spec/strategies/sharded_replicas_spec.lua"] = "30 s; it is the cpu's ranks in groups",
    ["spec/strategies/sharded_offload_spec.lua"] = "30 s; its ranks are on fake devices by name",
    ["spec/strategies/sharded_units_spec.lua"] = "20 s; spec/dist/devices_spec.lua has it on fake",
    ["spec/trainer/sharded_faults_spec.lua"] = "its jobs compute on the cpu",
    ["spec/trainer/deferred_spec.lua"] = "compares the cpu with the fake device, by name",
    ["spec/trainer/fit_spec.lua"] = {
      ["fit reports what is wrong with a loss that is not finite, before the weights are touched"] =
        "on a device the gradients are looked at, not each loss",
    },
    ["spec/trainer/full_disk_spec.lua"] = "runs programs of its own, on the cpu",
    ["spec/trainer/nonfinite_spec.lua"] = {
      ["nonfinite = 'stop' leaves logged values and buffers as they were"] =
        "on a device the gradients are looked at after the step",
      ["nonfinite = 'stop' runs the batch again with the random numbers that it had"] =
        "on a device the gradients are looked at after the step",
      ["nonfinite = 'stop' names the operation that made the first nan of a loss, not the last"] =
        "on a device the gradients are looked at, not each loss",
      ["nonfinite = 'stop' names the batch when that is not finite, and the weights when they are "
        .. "not"] = "on a device the gradients are checked, not each loss",
    },
    ["spec/trainer/options_spec.lua"] = {
      ["lt.Trainer takes the device that is there and says what is missing"] =
        "is about the cpu by name",
    },
    ["spec/trainer/replicas_spec.lua"] = "runs programs of its own, on the cpu",
    ["spec/trainer/resume_spec.lua"] = "runs programs of its own, on the cpu",
  },

  -- What runs on a device with --exhaustive alone, each with what it takes.
  slow = {
    fake = {
      ["spec/dist/elastic_spec.lua"] = "a minute",
      ["spec/parallel/expert_fit_spec.lua"] = "30 s",
      ["spec/parallel/fit_spec.lua"] = "a minute",
      ["spec/parallel/mesh_options_spec.lua"] = "a minute",
      ["spec/parallel/pipeline_sharding_spec.lua"] = "a minute",
      ["spec/parallel/sharded_mesh_spec.lua"] = "two minutes",
      ["spec/parallel/uneven_spec.lua"] = "a minute",
      ["spec/trainer/snapshots_spec.lua"] = "a minute",
    },
  },

  -- The same of some devices. emulated: of cuda where the build has it emulated and
  -- LT_TEST_DEVICES does not name it. A fiber a thread is slow: what says nothing of a device does
  -- not run there.
  lacking = {
    fake = {
      ["spec/dist/devices_spec.lua"] = "runs on it everywhere",
      ["spec/parallel/pipeline_mesh_spec.lua"] = "6 minutes; pipeline_files_spec.lua has pipelines",
    },
    cuda = {
      ["spec/dist/ddp_spec.lua"] = {
        ["ranks that differ count with the samples that they have: one skips a batch"] = RANKS,
      },
      ["spec/dist/elastic_spec.lua"] = RANKS,
      ["spec/dist/fit_spec.lua"] = RANKS,
      ["spec/dist/metrics_spec.lua"] = {
        ["a metric computes its rank's own value in a callback of rank 0 alone, and in steps"] =
          "its ranks go on with the script, in which only rank 0 has seen the value",
      },
      ["spec/dist/resume_spec.lua"] = RANKS,
      ["spec/dist/verification_spec.lua"] = RANKS,
      ["spec/strategies/interface_spec.lua"] = {
        ["a strategy of several ranks is one class with reduce_gradients"] = ONE,
        ["a strategy of several ranks says when it is not defined"] = ONE,
      },
      ["spec/strategies/parts_spec.lua"] = {
        ["a strategy as an object must fit the number of ranks"] = ONE,
        ["a strategy as an object has its parts and the trainer's in setup"] =
          "is about the name of an accelerator",
      },
      ["spec/parallel/attention_spec.lua"] = RANKS,
      ["spec/parallel/context_fit_spec.lua"] = RANKS,
      ["spec/parallel/context_parallel_spec.lua"] = RANKS,
      ["spec/parallel/expert_fit_spec.lua"] = RANKS,
      ["spec/parallel/experts_spec.lua"] = RANKS,
      ["spec/parallel/faults_spec.lua"] = RANKS,
      ["spec/parallel/fit_spec.lua"] = RANKS,
      ["spec/parallel/mesh_options_spec.lua"] = RANKS,
      ["spec/parallel/models_spec.lua"] = RANKS,
      ["spec/parallel/parallelize_spec.lua"] = RANKS,
      ["spec/parallel/pipeline_files_spec.lua"] = RANKS,
      ["spec/parallel/pipeline_mesh_spec.lua"] = RANKS,
      ["spec/parallel/pipeline_sharding_spec.lua"] = RANKS,
      ["spec/parallel/tensor_ranks_spec.lua"] = RANKS,
      ["spec/parallel/pipeline_schedules_spec.lua"] = RANKS,
      ["spec/parallel/sharded_mesh_spec.lua"] = RANKS,
      ["spec/parallel/uneven_spec.lua"] = RANKS,
      ["spec/strategies/float8_spec.lua"] = ONE,
      ["spec/strategies/horovod_spec.lua"] = RANKS,
      ["spec/strategies/model_parallel_spec.lua"] = ONE,
      ["spec/strategies/ranks_spec.lua"] = RANKS,
      ["spec/strategies/sharded_files_spec.lua"] = RANKS,
      ["spec/strategies/sharding_options_spec.lua"] = {
        ["Trainer{strategy = name of a stage} is a stage of Sharded"] = ONE,
        ["Trainer{strategy = name of a stage} says where what is divided is kept"] = ONE,
      },
      ["spec/trainer/sharded_files_spec.lua"] = RANKS,
      ["spec/trainer/sharded_spec.lua"] = RANKS,
      ["spec/trainer/after_step_spec.lua"] = {
        ["on_after_optimizer_step on several ranks runs on each in every step, also without a "
          .. "sample, as on one rank"] = ONE,
      },
      ["spec/trainer/loading_spec.lua"] = "is about a fit on the cpu",
      ["spec/trainer/options_spec.lua"] = {
        ["lt.Trainer takes a number of ranks, and nothing else, as devices"] = "is about the cpu",
        ["lt.Trainer knows the names of strategies"] = ONE,
      },
    },
    emulated = {
      ["spec/metrics/torchmetrics_spec.lua"] = "90 s; its operations have specs of their own",
      ["spec/trainer/exception_spec.lua"] = "20 s; it is about the host's part",
      ["spec/trainer/memory_spec.lua"] = "15 s; it is about the memory of the host",
    },
    ten = {
      ["spec/nn/clip_grad_spec.lua"] = "no kernel of grads_scale",
      ["spec/nn/many_modules_spec.lua"] = "no kernel of sgd_step",
      ["spec/nn/module_loop_spec.lua"] = {
        ["Module:clip_gradients clips by norm or by value, and does nothing without a bound"] =
          "no kernel of grads_scale",
      },
    },
  },
}
