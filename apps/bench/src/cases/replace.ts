import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { setTimeout as wait } from 'node:timers/promises'
import { OpCode } from '@zabra/protocol'
import { freePorts } from '@zabra/testkit'
import { busyFlags, longestTurn, turnsSince } from '../busy.ts'
import { openSession } from '../open-session.ts'
import type { Peer } from '../peers.ts'
import { fill } from './backup-size.ts'
import { scaled, withNodeFlags, type Case } from './case.ts'
import { create, numbered } from './holds.ts'

const NODES = 1_000_000
const POLL_MS = 50
/** How long a connection to a server without service may take, in milliseconds. */
const OPEN_WITHIN_MS = 1000

/** Sends a snapshot to a leader. */
function send(port: number, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/octet-stream', 'content-length': statSync(path).size }
    const sent = request({ port, path: '/api/v1/restore', method: 'POST', headers }, (response) => {
      response.resume()
      if (response.statusCode === 202) resolve()
      else reject(new Error(`The restore was answered by ${response.statusCode}`))
    })
    sent.once('error', reject)
    pipeline(createReadStream(path), sent).catch(reject)
  })
}

async function untilReplaced(port: number): Promise<void> {
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/restore`)
    const { state, problem } = (await response.json()) as { state: string; problem?: string }
    if (state === 'done') return
    if (state !== 'running') throw new Error(problem)
    await wait(POLL_MS)
  }
}

/** Writes as fast as one client can, at whichever server serves, until `stop`. Resolves to the longest time between two writes, in ms. */
async function longestGap({ ports }: Peer, stop: AbortSignal): Promise<number> {
  let longest = 0
  let last = performance.now()
  const path = numbered('/probe')
  for (let index = 0; !stop.aborted; index++) {
    const client = await Promise.race([
      openSession(ports[index % ports.length]!),
      wait(OPEN_WITHIN_MS).then(() => Promise.reject(new Error('no session in time'))),
    ]).catch(() => undefined)
    if (client === undefined) {
      await wait(POLL_MS)
      continue
    }
    try {
      await client.request(OpCode.create, (w) => create(() => '/probe')(w, 0)).catch(() => {})
      for (let at = 0; !stop.aborted; at++) {
        await client.request(OpCode.create, (w) => create(path)(w, index * 1_000_000 + at))
        longest = Math.max(longest, performance.now() - last)
        last = performance.now()
      }
      client.destroy()
    } catch {
      // The connection was closed; the next server is tried.
    }
  }
  return longest
}

/** The data of three servers replaced by others of the same size. */
export const replaceCase: Case = {
  name: 'replace-3',
  about: 'how long three servers are without service while a million znodes replace their data',
  only: 'zabra',
  run: async (context) => {
    const { note } = context
    const nodes = scaled(context, NODES)
    const adminPorts = await freePorts(3)
    const folder = mkdtempSync(join(tmpdir(), 'zabra-bench-replace-'))
    const peer = await withNodeFlags(context, busyFlags()).start({
      members: 3,
      folder,
      settings: (id) => ({
        'admin.enableServer': 'true',
        'admin.serverPort': adminPorts[id - 1]!,
        'admin.role.admin': 'ip:127.0.0.1',
        'admin.rateLimiterIntervalInMS': 0,
      }),
    })
    try {
      await fill(context, peer.ports[0]!, nodes)
      const leaderPort =
        adminPorts[Number(peer.leaderFolder.slice(peer.leaderFolder.lastIndexOf('/') + 1)) - 1]!
      const file = join(folder, 'replacement')
      const { body } = await fetch(`http://127.0.0.1:${leaderPort}/commands/snapshot`)
      await pipeline(Readable.fromWeb(body as ReadableStream), createWriteStream(file))
      const turns = peer.folders.map((one) => turnsSince(one))
      const stop = new AbortController()
      const gap = longestGap(peer, stop.signal)
      const began = performance.now()
      await send(leaderPort, file)
      await untilReplaced(leaderPort)
      note({ name: 'the data replaced', unit: 's', better: 'lower' }, (performance.now() - began) / 1000)
      await wait(2000)
      stop.abort()
      note({ name: 'longest time without a write', unit: 's', better: 'lower' }, (await gap) / 1000)
      const busy = turns.map((since) => longestTurn(since() ?? [], 'busy')?.busy ?? 0)
      note({ name: 'event loop busy: the leader', unit: 'ms', better: 'lower' }, busy[0]!)
      note({ name: 'event loop busy: a follower', unit: 'ms', better: 'lower' }, Math.max(...busy.slice(1)))
    } finally {
      await peer.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  },
}
