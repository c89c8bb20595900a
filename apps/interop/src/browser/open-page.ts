import { once } from 'node:events'
import { chromium } from '../harness/requirements.ts'
import { scratch, spawnOwned } from '../harness/servers.ts'

/** Opens a page in Chromium while `body` runs. Rejects with what it printed when it ends before. */
export async function withPage<T>(url: string, flags: readonly string[], body: Promise<T>): Promise<T> {
  const browser = spawnOwned(chromium, [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--disable-dev-shm-usage',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    `--user-data-dir=${scratch('chromium')}`,
    ...flags,
    url,
  ])
  let complaints = ''
  browser.stderr.on('data', (chunk: Buffer) => (complaints = (complaints + chunk.toString()).slice(-4000)))
  const gone = once(browser, 'exit').then(([code]) => {
    throw new Error(`Chromium exited with ${String(code)}: ${complaints}`)
  })
  try {
    return await Promise.race([body, gone])
  } finally {
    // Its helper processes write to the profile until they have ended too.
    browser.kill('SIGTERM')
    await gone.catch(() => {})
  }
}
