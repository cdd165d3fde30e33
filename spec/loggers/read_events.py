# spec/loggers/read_events.py: prints what the tensorboard package reads in a folder of event files,
# as JSON: what its tabs would show.
#
#   python spec/loggers/read_events.py FOLDER        (the folder above those of runs)
import base64
import json
import sys

from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import backend_context, list_session_groups, api_pb2
from tensorboard import context

folder = sys.argv[1]
multiplexer = plugin_event_multiplexer.EventMultiplexer()
multiplexer.AddRunsFromDirectory(folder)
multiplexer.Reload()
provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
ctx = context.RequestContext()

found = {}
for run in multiplexer.Runs():
    one = found[run] = {"scalars": {}, "images": {}, "texts": {}, "histograms": {}}
    for plugin in ("scalars", "images", "text", "histograms"):
        for tag in multiplexer.PluginRunToTagToContent(plugin).get(run, {}):
            for event in multiplexer.Tensors(run, tag):
                proto = event.tensor_proto
                if plugin == "scalars":
                    value = proto.float_val[0]
                elif plugin == "histograms":
                    import numpy
                    value = numpy.frombuffer(proto.tensor_content, "<f8").reshape(-1, 3).tolist()
                else:
                    value = [base64.b64encode(s).decode() if s[:4] == b"\x89PNG" else s.decode()
                             for s in proto.string_val]
                key = {"text": "texts"}.get(plugin, plugin)
                one[key].setdefault(tag, []).append([event.step, value])

hparams = backend_context.Context(
    base_plugin.TBContext(logdir=folder, multiplexer=multiplexer, data_provider=provider))
experiment = hparams.experiment_from_metadata(
    ctx, "", include_metrics=True,
    hparams_run_to_tag_to_content=hparams.hparams_metadata(ctx, ""),
    data_provider_hparams=[])
groups = list_session_groups.Handler(
    ctx, hparams, "", api_pb2.ListSessionGroupsRequest(
        start_index=0, slice_size=10,
        allowed_statuses=[api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE,
                          api_pb2.STATUS_RUNNING, api_pb2.STATUS_UNKNOWN],
        include_metrics=True)).run()
found["hparams"] = {
    "names": sorted(info.name for info in experiment.hparam_infos),
    "metrics": sorted(info.name.tag for info in experiment.metric_infos),
    "sessions": [{"hparams": {k: v.number_value or v.string_value or v.bool_value
                              for k, v in group.hparams.items()},
                  "status": group.sessions[0].status} for group in groups.session_groups],
}
json.dump(found, sys.stdout, indent=1, sort_keys=True)
