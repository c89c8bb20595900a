import { it } from 'vitest'
import { execFileSync } from 'node:child_process'
import { connect } from '@zabra/client'
import { Ensemble } from './ensemble/ensemble.ts'
it('x', async () => {
  const e = await Ensemble.start({ kinds: ['apache-3.8','apache-3.8','apache-3.8'] })
  const servers = e.ids.map((id) => e.member(id).address)
  const c = await connect({ servers, sessionTimeout: 16000 })
  await c.create('/m', null)
  await c.create('/l', null)
  await c.multi([{ op: 'setData', path: '/l', data: new Uint8Array(3) }, { op: 'create', path: `/m/1`, data: null }])
  await c.multi([{ op: 'create', path: `/m/2`, data: null }])
  await c.multi([{ op: 'setData', path: '/l', data: new Uint8Array(3) }])
  await c.multi([{ op: 'create', path: `/m/3`, data: new Uint8Array(1) },{ op: 'create', path: `/m/4`, data: new Uint8Array(1) }])
  await c.close()
  const f = execFileSync('sh', ['-c', `ls ${e.folder(1)}/version-2/log.*`]).toString().trim().split('\n')
  console.log(f)
  for (const one of f) {
    console.log(execFileSync('sh', ['-c', `java -cp /usr/share/java/zookeeper.jar:/etc/zookeeper/conf_example org.apache.zookeeper.server.persistence.TxnLogToolkit -d ${one} 2>&1 | tail -20`]).toString())
  }
  await e[Symbol.asyncDispose]()
}, 200000)
