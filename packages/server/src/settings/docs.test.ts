import { expect, test } from 'vitest'
import { renderDocs } from './docs.ts'

test('docs/configuration.md is what the table says; `pnpm --filter @zabra/server gen:docs` renews it', async () => {
  await expect(renderDocs()).toMatchFileSnapshot('../../../../docs/configuration.md')
})
