# spec/loggers/read_mlflow.py: prints what the mlflow package reads in a file store: of each run its
# status, parameters, tags, artifacts and the history of its metrics.
#
#   MLFLOW_ALLOW_FILE_STORE=true python spec/loggers/read_mlflow.py FOLDER        (mlruns)
import json
import os
import sys

from mlflow.tracking import MlflowClient

client = MlflowClient("file:" + os.path.abspath(sys.argv[1]))
for experiment in client.search_experiments():
    for run in client.search_runs([experiment.experiment_id]):
        info, data = run.info, run.data
        print(json.dumps({
            "experiment": experiment.name, "run": info.run_name, "status": info.status,
            "params": data.params, "tags": data.tags,
            "artifacts": [one.path for one in client.list_artifacts(info.run_id)],
            "metrics": {name: [[one.step, one.value] for one in
                               client.get_metric_history(info.run_id, name)]
                        for name in data.metrics},
        }))
