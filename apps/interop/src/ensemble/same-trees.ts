import { resolve } from 'node:path'
import { expect } from 'vitest'
import { python } from '../harness/requirements.ts'
import { run } from '../harness/servers.ts'
import type { Ensemble } from './ensemble.ts'

const script = resolve(import.meta.dirname, '../../python/ensemble.py')

/** Returns the last output of every member, for failure messages. */
export const outputs = (ensemble: Ensemble): string =>
  ensemble.running.map((id) => `--- ${id}\n${ensemble.member(id).output.slice(-6000)}`).join('\n')

/** Writes through each member that runs and reads at every other one, with kazoo. */
export async function writeThroughAll(ensemble: Ensemble, label: string): Promise<void> {
  const addresses = ensemble.running.map((id) => ensemble.member(id).address)
  const { code, output } = await run(python, [script, label, ...addresses], { timeoutMs: 60_000 })
  if (code !== 0) throw new Error(`kazoo exited with ${code}:\n${output.slice(-3000)}\n${outputs(ensemble)}`)
}

/** Expects equal trees on all running members. */
export async function expectSameTrees(ensemble: Ensemble): Promise<void> {
  const dumps = await ensemble.dumps()
  const [first] = dumps.keys()
  for (const [id, dump] of dumps)
    expect(dump, `the tree of ${id} beside that of ${first}`).toEqual(dumps.get(first!))
}
