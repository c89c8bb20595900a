import { freePorts } from '@zabra/testkit'
import { once } from 'node:events'
import { connect } from 'node:tls'
import { fileURLToPath } from 'node:url'
import {
  chainOf,
  linkOf,
  pemOf,
  type ChainLink,
} from '../../../../packages/runtime/src/node/testing/client-chains.ts'
import { busyFlags } from '../busy.ts'
import { withNodeFlags, type CaseContext } from './case.ts'
import { watchHolds } from './holds.ts'

const certificate = (name: string): string =>
  fileURLToPath(new URL(`../../../packages/runtime/src/testdata/tls/${name}`, import.meta.url))

/** Times that each chain is shown, one after the other. */
const TIMES = 5

/** Returns so many links with a key each. */
const links = (count: number, kind: string): ChainLink[] => Array.from({ length: count }, () => linkOf(kind))

/** Measures, on a server of its own that asks for certificates, how long chains of a stranger hold the event loop. */
export async function measureChains(context: CaseContext): Promise<void> {
  const { rows } = context.options
  const chains: Readonly<Record<string, () => ChainLink[]>> = {
    'a chain of a stranger with 100 certificates on P-521': () => links(100, 'secp521r1'),
    'a chain of a stranger with 8 certificates on P-384': () => links(8, 'secp384r1'),
    'a chain of a stranger with 4 certificates on P-521': () => links(4, 'secp521r1'),
  }
  const wanted = Object.entries(chains).filter(([row]) => rows === undefined || rows.test(row))
  if (wanted.length === 0) return
  const [tlsPort] = (await freePorts(1)) as [number]
  const peer = await withNodeFlags(context, busyFlags()).start({
    settings: {
      secureClientPort: tlsPort,
      'ssl.keyStore.location': certificate('server.pem'),
      'ssl.trustStore.location': certificate('authority.pem'),
    },
  })
  const show = async (cert: string, key: string | Buffer): Promise<void> => {
    const socket = connect({ port: tlsPort, host: '127.0.0.1', rejectUnauthorized: false, key, cert })
    const closed = new Promise((resolve) => socket.on('error', () => {}).on('close', resolve))
    await once(socket.resume(), 'secureConnect').catch(() => {})
    await closed
  }
  try {
    for (const [row, make] of wanted) {
      const chain = make()
      const key = chain[0]!.privateKey!.export({ type: 'pkcs8', format: 'pem' })
      const cert = pemOf(chainOf(chain))
      const noteHolds = await watchHolds(context, peer, (kind) => `event loop ${kind}: ${row}`)
      for (let time = 0; time < TIMES; time++) await show(cert, key)
      await noteHolds()
    }
  } finally {
    await peer.stop()
  }
}
