import type { Prng } from '@zabra/testing'
import type { ClientPlan } from './client-plan.ts'
import type { Fault } from './fault.ts'
import type { VoterSet } from './membership.ts'

export function drawFaults(prng: Prng, servers: number, clients: number, loadMs: number): Fault[] {
  const faults: Fault[] = []
  const clocks = prng.chance(0.4)
  const mean = prng.pick([400, 1200, 3000])
  for (let at = 200 + prng.exponential(mean); at < loadMs; at += 50 + prng.exponential(mean)) {
    const fault = drawFault(prng, at, servers, clients, clocks)
    if (fault !== undefined) faults.push(fault)
  }
  return faults
}

function drawFault(
  prng: Prng,
  at: number,
  servers: number,
  clients: number,
  clocks: boolean,
): Fault | undefined {
  const forMs = prng.pick([20, 200, 1000, 3000, 6000]) * prng.between(0.5, 1.5)
  const server = servers > 1 && prng.chance(0.4) ? 0 : prng.integer(1, servers)
  const client = prng.below(clients)
  const both = { at, forMs }
  const kind = prng.pickWeighted({
    kill: 4,
    powerCut: 4,
    tornWrite: 4,
    stop: 1.5,
    handOver: servers > 1 ? 1.5 : 0,
    pause: 3,
    slowDisk: 2,
    fullDisk: 0.7,
    syncError: 0.7,
    killAll: 0.5,
    powerCutAll: 1,
    wallJump: clocks ? 1 : 0,
    drift: clocks ? 1 : 0,
    clientCut: 2,
    clientReset: 3,
    clientCrash: 1.5,
    clientPause: 1.5,
    ...(servers > 1
      ? {
          isolate: 4,
          dropInbound: 2,
          dropOutbound: 2,
          split: 3,
          bridge: servers > 3 ? 2 : 0,
          slowLink: 2,
          resetPeers: 3,
        }
      : {}),
  })
  switch (kind) {
    case 'killAll':
    case 'powerCutAll':
      return { ...both, kind }
    case 'tornWrite':
      return { ...both, kind, server, afterMs: prng.pick([0, 0.1, 0.5, 3]) }
    case 'wallJump':
      return { ...both, kind, server, by: prng.pick([-3_600_000, -2000, 2000, 3_600_000]) }
    case 'drift':
      return { ...both, kind, server, by: prng.between(0.9, 1.1) }
    case 'split':
      return {
        ...both,
        kind,
        group: prng.shuffled(range(servers)).slice(0, prng.integer(1, Math.floor(servers / 2))),
      }
    case 'slowLink':
      return { ...both, kind, server, other: prng.integer(1, servers), ms: prng.pick([20, 150, 600]) }
    case 'clientCut':
    case 'clientReset':
    case 'clientCrash':
    case 'clientPause':
      return { ...both, kind, client, server: prng.integer(1, servers) }
    case 'kill':
    case 'powerCut':
    case 'pause':
    case 'slowDisk':
    case 'fullDisk':
    case 'syncError':
    case 'isolate':
    case 'dropInbound':
    case 'dropOutbound':
    case 'bridge':
    case 'resetPeers':
    case 'stop':
      return { ...both, kind, server }
    case 'handOver':
      return { ...both, kind, server: 0 }
  }
}

/** How long servers lose their quorum: long enough to notice it and serve read-only clients for a while. */
export const NO_QUORUM_MS = 7000

export function drawQuorumLoss(prng: Prng, servers: number, loadMs: number): Fault[] {
  const at = prng.between(200, loadMs - NO_QUORUM_MS - 1000)
  const forMs = prng.between(5500, NO_QUORUM_MS)
  const minority = prng.shuffled(range(servers)).slice(0, Math.floor(servers / 2))
  const down = range(servers).filter((id) => !minority.includes(id))
  return prng.pickWeighted({ split: 1, down: 1 }) === 'split'
    ? [{ kind: 'split', group: minority, at, forMs }]
    : down.map((server) => ({ kind: 'kill', server, at: at + prng.between(0, 300), forMs }))
}

/** In some runs, draws a leader that learns late that it was replaced. */
export function drawStaleLeaders(prng: Prng, servers: number, loadMs: number): Fault[] {
  if (servers === 1 || !prng.chance(0.3)) return []
  const at = prng.between(100, Math.max(200, loadMs - 5000))
  return [{ kind: 'staleLeader', server: 0, at, forMs: prng.between(3500, 6000) }]
}

/**
 * Draws strangers, most of them there from the beginning to the end. Those with the address of a server have that of one server,
 * which is no quorum of the first voters: nothing protects members from false claims of a quorum. The weight of groups is that of voters
 * alone, so that one server can be a quorum once others observe. The operator sees to later configurations.
 */
export function drawStrangers(prng: Prng, { isQuorum }: VoterSet, servers: number, loadMs: number): Fault[] {
  const known = prng.pick(range(servers).filter((id) => !isQuorum((other) => other === id)))
  return Array.from({ length: prng.integer(2, 4) }, () => prng.pick(['elsewhere', 'server'] as const)).map(
    (from) => ({
      kind: 'stranger',
      server: from === 'server' ? known : prng.integer(1, servers),
      from,
      seed: prng.below(2 ** 31),
      at: prng.chance(0.5) ? 0 : prng.between(0, loadMs),
      forMs: prng.chance(0.6) ? loadMs : prng.between(100, loadMs),
    }),
  )
}

/** Draws attempts to take over the sessions of clients whose users are such ones. */
export function drawThieves(
  prng: Prng,
  clients: readonly ClientPlan[],
  isVictim: (user: string) => boolean,
  servers: number,
  loadMs: number,
): Fault[] {
  const victims = clients.flatMap(({ user }, client) => (isVictim(user) ? [client] : []))
  if (victims.length === 0) return []
  return Array.from({ length: prng.integer(4, 12) }, () => ({
    kind: 'thief',
    client: prng.pick(victims),
    server: prng.integer(1, servers),
    logsIn: prng.chance(0.5),
    at: prng.between(200, loadMs),
    forMs: 1000,
  }))
}

/** In some runs, draws servers that have accepted epochs in which no server led. */
export function drawLaterEpochs(prng: Prng, servers: number, loadMs: number): Fault[] {
  if (servers < 3 || !prng.chance(0.2)) return []
  return Array.from({ length: prng.integer(1, 2) }, () => ({
    kind: 'laterEpoch',
    server: prng.integer(1, servers),
    by: prng.pick([1, 2, 5, 900]),
    at: prng.between(200, loadMs),
    forMs: prng.between(20, 3000),
  }))
}

/**
 * Draws disks on which syncs take seconds, each while the members change: a member stores a configuration before it applies what is
 * committed after it.
 */
export function drawHangingDisks(prng: Prng, servers: number, loadMs: number): Fault[] {
  const faults: Fault[] = []
  for (let at = prng.between(200, 1500); at < loadMs; at += prng.between(3000, 6000)) {
    const [hanging, changed] = prng.shuffled(range(servers)) as [number, number]
    faults.push(
      { kind: 'slowDisk', server: hanging, syncMs: prng.pick([1500, 2500]), at, forMs: 2500 },
      { kind: prng.pick(['vote', 'observe']), server: changed, at: at + 50, forMs: 50 },
    )
  }
  return faults
}

/** Draws transfers of leadership to chosen servers, slow and full disks of these, and interruptions while leadership is handed over. */
export function drawTransfers(prng: Prng, servers: number, loadMs: number): Fault[] {
  const faults: Fault[] = []
  const mean = prng.pick([400, 800, 1500])
  for (let at = prng.between(200, 1000); at < loadMs; at += 50 + prng.exponential(mean)) {
    const to = prng.integer(1, servers)
    if (prng.chance(0.6)) faults.push({ ...drawTransferInterruption(prng), at: at - 1 })
    const isSlow = prng.chance(0.05)
    if (isSlow)
      faults.push({
        kind: 'slowDisk',
        server: to,
        syncMs: prng.pick([50, 100, 300]),
        at: at - 1,
        forMs: 3000,
      })
    else if (prng.chance(0.05))
      faults.push({ kind: 'fullDisk', server: to, at: at + prng.pick([0.2, 0.5, 2]), forMs: 600 })
    faults.push({ kind: 'transfer', server: 0, to, at, forMs: prng.pick([0, 500, 1500]) })
  }
  return faults
}

const drawTransferInterruption = (prng: Prng): Omit<Extract<Fault, { kind: 'interruptTransfer' }>, 'at'> => ({
  kind: 'interruptTransfer',
  how: prng.pick(['reset', 'isolate', 'kill', 'powerCut']),
  target: prng.pickWeighted({ leader: 3, successor: 3, both: 1, all: 1 }),
  afterMs: prng.pick([0, 0, 0.3, 1, 3, 10, 30, 300]),
  forMs: prng.pick([20, 100, 600, 3000]),
})

/** Draws two members that are refused for seconds, one after the other: one of them does not lead. */
export function drawRefusals(prng: Prng, servers: number, loadMs: number): Fault[] {
  return prng
    .shuffled(range(servers))
    .slice(0, 2)
    .map((server, index) => ({
      kind: 'refused',
      server,
      at: 100 + (index * loadMs) / 2,
      forMs: Math.min(5000, loadMs / 2),
    }))
}

export const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)
