import { expect, test } from 'vitest'
import { renderLogEvents } from './docs.ts'

test('docs/log-events.md matches the table of events; `pnpm --filter @zabra/server gen:docs` regenerates it', async () => {
  await expect(renderLogEvents()).toMatchFileSnapshot('../../../../docs/log-events.md')
})
