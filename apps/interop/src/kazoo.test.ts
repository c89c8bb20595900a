import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { describeWith, python } from './harness/requirements.ts'
import { run } from './harness/servers.ts'
import { onBoth } from './harness/transcript.ts'

const script = (name: string): string => resolve(import.meta.dirname, '../python', name)

async function transcript(name: string, address: string): Promise<string> {
  const { code, stdout, stderr } = await run(python, [script(name), address], { timeoutMs: 90_000 })
  if (code !== 0)
    throw new Error(`${name} exited with ${code}:\n${stdout.slice(-1500)}\n${stderr.slice(-3000)}`)
  return stdout.trimEnd()
}

describeWith(['apache', 'kazoo'], 'kazoo', () => {
  it('gets the same results for every operation', async () => {
    const { apache, zabra } = await onBoth((server) => transcript('operations.py', server.address))
    expect(zabra).toEqual(apache)
    expect(zabra.at(-1)).toBe('end')
    expect(zabra.length).toBeGreaterThan(80)
  })

  it('gets the same results for all its recipes', async () => {
    const { apache, zabra } = await onBoth((server) => transcript('recipes.py', server.address))
    expect(zabra).toEqual(apache)
    expect(zabra.join('\n')).not.toContain('TIMEOUT')
    expect(zabra.at(-1)).toBe('end')
  })
})
