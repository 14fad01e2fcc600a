const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const cluster = require('cluster');
const { execFileSync, spawn } = require('child_process');
if (!isMainThread) {
  parentPort.postMessage(workerData * 2);
} else if (cluster.isWorker) {
  process.exit(cluster.worker.id);
} else {
  const answers = [1, 2, 3].map((number) => new Promise((done, failed) => {
    new Worker(__filename, { workerData: number }).on('message', done).on('error', failed);
  }));
  const ends = [1, 2].map(() => new Promise((done) => cluster.fork().on('exit', done)));
  const spawned = new Promise((done) => spawn('sh', ['-c', 'exit 5']).on('exit', done));
  Promise.all([...answers, ...ends, spawned]).then((all) => console.log(JSON.stringify(all), execFileSync('echo', ['word']).toString()));
}
