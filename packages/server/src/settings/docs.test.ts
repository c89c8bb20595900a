import { expect, test } from 'vitest'
import { renderDocs } from './docs.ts'

test('docs/configuration.md matches the table of settings; `pnpm --filter @zabra/server gen:docs` regenerates it', async () => {
  await expect(renderDocs()).toMatchFileSnapshot('../../../../docs/configuration.md')
})
