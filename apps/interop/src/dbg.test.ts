import { it } from 'vitest'
import { execSync } from 'node:child_process'
import { Ensemble } from './ensemble/ensemble.ts'
import { trial } from './ensemble/trial.ts'
it('x', async () => {
  const e = await Ensemble.start({ kinds: ['zabra', 'zabra', 'zabra'], config: { snapCount: 500 } })
  try {
    const v = await trial(e, { seed: 1, sessionTimeout: 16000 }, async () => {
      for (let i = 0; i < 12; i++) {
        const leader = await e.leader()
        execSync(`rm -rf /tmp/dbg-data; mkdir -p /tmp/dbg-data`)
        await e.stop(leader)
        for (const id of e.ids) execSync(`cp -r ${e.folder(id)} /tmp/dbg-data/${id}`)
        console.log('stopped', leader)
        await e.start(leader)
        await e.leader()
      }
    })
    console.log(JSON.stringify(v).slice(0, 1000))
  } catch (error) {
    console.log(String(error).slice(0, 500))
    for (const id of e.ids) { execSync(`rm -rf /tmp/dbg-data/${id}-after; cp -r ${e.folder(id)} /tmp/dbg-data/${id}-after`); console.log('OUT', id, e.member(id).output.slice(-3500)) }
  }
  await e[Symbol.asyncDispose]()
}, 300000)
