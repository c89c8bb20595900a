import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CreateMode, OPEN_ACL_UNSAFE, OpCode, writeCreateRequest } from '@zabra/protocol'
import { freePorts } from '@zabra/testkit'
import { busyFlags } from '../busy.ts'
import { openSession } from '../open-session.ts'
import { cpuSecondsOf } from '../peers.ts'
import { scaled, withNodeFlags, type Case, type CaseContext } from './case.ts'
import { create, numbered, watchHolds } from './holds.ts'
import { backupsOnRequest, backUp } from './operate.ts'

const NODES = 1_000_000
/** What a backup may need beside the tree, in MB. */
const MEMORY_LIMIT = 300
/** How long a restore of a million nodes may take, in seconds: 200,000 nodes a second. */
const SECONDS_PER_MILLION = 5
const MB = 2 ** 20

const zabra = createRequire(import.meta.url)
  .resolve('zabra/package.json')
  .replace('package.json', 'dist/main.js')

/** How often the processor time of the command line is read. */
const SAMPLE_MS = 50

/** Runs the command line. Resolves to the seconds that it took, elapsed and of processor time. Rejects when it fails. */
function run(...args: readonly string[]): Promise<{ readonly seconds: number; readonly cpuSeconds: number }> {
  const began = performance.now()
  const child = spawn(process.execPath, [zabra, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
  let err = ''
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  let cpuSeconds = 0
  const sampling = setInterval(() => (cpuSeconds = cpuSecondsOf(child.pid!) ?? cpuSeconds), SAMPLE_MS)
  return new Promise((resolve, reject) => {
    child.once('close', (code) => {
      clearInterval(sampling)
      if (code === 0) resolve({ seconds: (performance.now() - began) / 1000, cpuSeconds })
      else reject(new Error(`zabra ${args[0]} ended with ${code}: ${err.trim()}`))
    })
  })
}

/** Creates nodes with data below one parent. */
export async function fill(context: CaseContext, port: number, nodes: number): Promise<void> {
  const data = Buffer.alloc(context.options.size, 'x')
  const path = numbered('/p')
  const client = await openSession(port)
  await client.request(OpCode.create, (w) => create(() => '/p')(w, 0))
  await client.requestMany(nodes, OpCode.create, (writer, index) => {
    data.writeUInt32LE(index, 0)
    writeCreateRequest(writer, {
      path: path(index),
      data,
      acl: OPEN_ACL_UNSAFE,
      flags: CreateMode.PERSISTENT,
    })
  })
  await client.close()
}

/** Memory of a backup beyond the tree, and speed of a restore. */
export const backupSize: Case = {
  name: 'backup-size',
  about:
    'memory and time of a backup of a million znodes, and of a restore to a data folder; --scale 10 for ten million',
  only: 'zabra',
  run: async (context) => {
    const { note } = context
    const nodes = scaled(context, NODES)
    const millions = nodes / 1e6
    const [adminPort] = await freePorts(1)
    const folder = mkdtempSync(join(tmpdir(), 'zabra-bench-backup-'))
    const target = join(folder, 'backups')
    const peer = await withNodeFlags(context, busyFlags()).start({
      folder,
      settings: backupsOnRequest(adminPort!, target),
    })
    try {
      await fill(context, peer.ports[0]!, nodes)
      peer.resetPeakBytes()
      const before = peer.residentBytes()
      const noteHolds = await watchHolds(context, peer, (kind) => `event loop ${kind}: a backup of all`)
      const began = performance.now()
      await backUp(adminPort!)
      const seconds = (performance.now() - began) / 1000
      await noteHolds()
      const more = (peer.peakBytes() - before) / MB
      note({ name: 'memory of the tree', unit: 'MB', better: 'lower' }, before / MB)
      note({ name: 'memory of a backup beside it', unit: 'MB', better: 'lower', limit: MEMORY_LIMIT }, more)
      note({ name: 'backup of a million nodes', unit: 's', better: 'lower' }, seconds / millions)
      await peer.stop({ keep: true })
      const restored = await run('restore', '--target', target, '--to', join(folder, 'restored'))
      note(
        { name: 'restore of a million nodes', unit: 's', better: 'lower', limit: SECONDS_PER_MILLION },
        restored.seconds / millions,
      )
      note(
        { name: 'processor time of a restore of a million nodes', unit: 's', better: 'lower' },
        restored.cpuSeconds / millions,
      )
    } finally {
      await peer.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  },
}
