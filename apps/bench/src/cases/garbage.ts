import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseCollections } from '../collections.ts'
import { load } from '../load.ts'
import { fourLetterWord } from '../peers.ts'
import { mntrFigures } from '../series.ts'
import { loadArgs, type Case } from './case.ts'

/**
 * Measures the heap bytes that Zabra allocates per request, from V8's trace of collections. The trace ends at the last
 * collection, so the error is at most one young generation: some megabytes in hundreds.
 */
export const garbageCase: Case = {
  name: 'garbage',
  about: 'heap bytes that Zabra allocates per request, and its longest collection meanwhile',
  only: 'zabra',
  run: async ({ options, note, start }) => {
    const folder = mkdtempSync(join(tmpdir(), 'zabra-bench-garbage-'))
    const output = join(folder, 'collections')
    const peer = await start({ nodeFlags: ['--trace-gc-nvp'], output })
    const requests = async (): Promise<number> => {
      const figures = mntrFigures(await fourLetterWord(peer.ports[0]!, 'mntr'))
      return figures.get('packets_received')!
    }
    try {
      await load(peer.servers, '-m', 'mixed', ...loadArgs({ ...options, seconds: 2 }))
      for (const work of ['get', 'set', 'create'] as const) {
        const before = { ...parseCollections(readFileSync(output, 'utf8')), requests: await requests() }
        const from = readFileSync(output, 'utf8').length
        await load(peer.servers, '-m', work, ...loadArgs(options))
        const text = readFileSync(output, 'utf8')
        const made = parseCollections(text).allocated - before.allocated
        const what = work === 'create' ? 'create and its later deletion, each' : work
        const name = `bytes of garbage for a ${what}`
        note({ name, unit: 'bytes', better: 'lower' }, made / ((await requests()) - before.requests))
        const pause = {
          name: `longest collection under ${work}s`,
          unit: 'ms',
          better: 'lower',
          limit: 20,
        } as const
        note(pause, parseCollections(text.slice(from)).longest)
      }
    } finally {
      await peer.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  },
}
