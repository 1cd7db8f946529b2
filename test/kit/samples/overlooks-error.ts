import test from 'node:test'

test('this test overlooks a rejected promise', async () => {
  void Promise.reject(new Error('nobody waits for this'))
  await new Promise(resolve => setImmediate(resolve))
})
